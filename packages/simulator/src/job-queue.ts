/** An element of a queue. It stores the links to its neighbours itself. */
export interface Queued {
  /** The priority as a number: 0 critical, 1 default, 2 sheddable. */
  readonly rank: number;
  ahead: Queued | undefined;
  behind: Queued | undefined;
}

/** A queue with one circular list per priority. Any job can be removed in constant time. */
export class JobQueue<T extends Queued> {
  length = 0;
  readonly #ends: readonly Queued[] = [ring(), ring(), ring()];

  add(job: T): void {
    const end = this.#ends[job.rank]!;
    job.ahead = end.ahead;
    job.behind = end;
    end.ahead!.behind = job;
    end.ahead = job;
    this.length++;
  }

  remove(job: T): void {
    if (!job.ahead) return;
    job.ahead.behind = job.behind;
    job.behind!.ahead = job.ahead;
    job.ahead = job.behind = undefined;
    this.length--;
  }

  /** Returns the oldest job of the highest priority; with `newest`, the newest one. */
  next(newest: boolean): T | undefined {
    for (const end of this.#ends) if (end.ahead !== end) return (newest ? end.ahead : end.behind) as T;
    return undefined;
  }

  oldest(): (T | undefined)[] {
    return this.#ends.map((end) => (end.behind === end ? undefined : (end.behind as T)));
  }

  /** Returns the newest job of the lowest priority, if that priority is lower than `rank`. */
  lessImportant(rank: number): T | undefined {
    const end = this.#ends.findLast((each, its) => its > rank && each.ahead !== each);
    return end?.ahead as T | undefined;
  }
}

function ring(): Queued {
  const end: Queued = { rank: 0, ahead: undefined, behind: undefined };
  end.ahead = end.behind = end;
  return end;
}
