import type { AttemptRecord } from '@holdfast/contracts';
import type { BreakerCounts, DependencyGate } from './dependency-gate.ts';
import type { Task } from './task.ts';

/** What has been counted of one dependency so far. */
export interface Count extends BreakerCounts {
  /** Events that were handled, and for which a call on it succeeded. */
  readonly handled: number;
}

/** Whose failure it is that a handler has failed. */
export interface Fault {
  /** The event's own. Otherwise the dependency's, as far as anybody can tell. */
  readonly isOwn: boolean;
  /** The dependencies, by their index in the gate, on which a call has failed meanwhile. */
  readonly failedDependencies: readonly number[];
  /** No breaker of one of them is closed. */
  readonly isDependencyDown: boolean;
  /** Others have succeeded on one of them between two failures of the event, now or before. */
  readonly isProvenOwn: boolean;
  /** Failed probes that cost nothing when they failed and count now. The store has not counted them. */
  readonly uncounted: number;
  /** The last of them; it is not in the story yet. */
  readonly lastUncounted: AttemptRecord | undefined;
}

/** What is remembered of an event that failed when a dependency did. */
interface Failure {
  readonly at: number;
  /** At the end of its last failure: what succeeds after it is the work of others. */
  readonly counts: readonly Count[];
  /** Others have succeeded between two of its failures. */
  readonly isProvenOwn: boolean;
  readonly uncounted: number;
  readonly lastUncounted: AttemptRecord | undefined;
}

/** An event that has been the only one to fail for 4 hours pays for its failures; until then it may be an outage. */
export const outageMaxMs = 4 * 60 * 60 * 1000;

/** At most 1,000 events are remembered. The one whose last failure is the oldest is forgotten first, as if it had never failed. */
const rememberedMax = 1000;

const OWN: Fault = {
  isOwn: true,
  failedDependencies: [],
  isDependencyDown: false,
  isProvenOwn: false,
  uncounted: 0,
  lastUncounted: undefined,
};

/**
 * Tells the failures of events from those of what they depend on. A failure is the event's own when
 *
 * - no call on a dependency has failed while its handler ran, or
 * - others have succeeded since the event last failed: events were handled by means of the dependency, or, where its breaker is
 *   closed, calls of anybody have succeeded, or
 * - no other event fails now, and either others have succeeded between two of its failures before, or this has lasted for too long.
 *
 * All of it is kept in memory. After a restart nothing is known and the breakers are closed: until they open, an event pays for
 * each failure but the last that it has.
 */
export class Blame {
  readonly #gate: DependencyGate;
  /** Events handled by means of each dependency. */
  readonly #handled: number[];
  /** By the ids of events, the least recent failure first. */
  readonly #failures = new Map<string, Failure>();
  /** The event that failed last, and since when no other has. */
  #last: { readonly id: string; readonly since: number } | undefined;

  constructor(gate: DependencyGate) {
    this.#gate = gate;
    this.#handled = gate.names.map(() => 0);
  }

  get remembered(): number {
    return this.#failures.size;
  }

  /** A handler is about to run. */
  begin(task: Task): void {
    if (this.#gate.hasDependencies) task.countsBefore = this.#counts();
  }

  /** An event has been handled. */
  succeeded({ countsBefore }: Task): void {
    if (!countsBefore) return;
    for (const [index, { succeeded }] of this.#gate.counts().entries())
      if (succeeded > countsBefore[index]!.succeeded) this.#handled[index]! += 1;
  }

  /** Whose failure it is. `aloneMaxMs`: how long an event may fail without any other before it is its own. */
  of(task: Task, now: number, aloneMaxMs: number): Fault {
    const { countsBefore } = task;
    if (!countsBefore) return OWN;
    const failure = this.#failures.get(task.id);
    const { uncounted = 0, lastUncounted, isProvenOwn: wasProvenOwn = false } = failure ?? {};
    const failedDependencies = this.#failedSince(countsBefore);
    if (failedDependencies.length === 0) return { ...OWN, uncounted };
    const isDependencyDown = failedDependencies.some((index) => this.#gate.isDown(index, now));
    const othersSucceeded =
      failure !== undefined &&
      failedDependencies.some((index) =>
        hasSucceeded(failure.counts[index]!, countsBefore[index]!, isDependencyDown),
      );
    const isProvenOwn = wasProvenOwn || othersSucceeded;
    const aloneForMs = this.#last?.id === task.id ? now - this.#last.since : -1;
    const isOwn = othersSucceeded || aloneForMs >= (isProvenOwn ? 0 : aloneMaxMs);
    if (!isOwn)
      return {
        isOwn,
        failedDependencies,
        isDependencyDown,
        isProvenOwn,
        uncounted,
        lastUncounted: undefined,
      };
    return {
      isOwn,
      failedDependencies,
      isDependencyDown,
      isProvenOwn,
      uncounted: lastUncounted ? uncounted + 1 : uncounted,
      lastUncounted,
    };
  }

  /** Remembers the failure of `task`. `lastUncounted`: it costs nothing yet. */
  remember({ id }: Task, now: number, fault: Fault, lastUncounted?: AttemptRecord): void {
    const { failedDependencies, isOwn, isProvenOwn, uncounted } = fault;
    if (failedDependencies.length === 0) return;
    const lastUncountedBefore = isOwn ? undefined : this.#failures.get(id)?.lastUncounted;
    if (this.#last?.id !== id) this.#last = { id, since: now };
    this.#failures.delete(id);
    this.#failures.set(id, {
      at: now,
      counts: this.#counts(),
      isProvenOwn,
      uncounted,
      lastUncounted: lastUncounted ?? lastUncountedBefore,
    });
    this.#trim(now);
  }

  /** The event has come to its end here. */
  forget(id: string): void {
    this.#failures.delete(id);
    if (this.#last?.id === id) this.#last = undefined;
  }

  /**
   * Which of the waiting events are to be the probes, `count` of them at most: those that have not failed, and only if there are
   * none those that have, the least recent failure first.
   */
  probes<T>(tasks: readonly Task<T>[], count: number): readonly Task<T>[] {
    const fresh = tasks.filter(({ id }) => !this.#failures.has(id));
    if (fresh.length > 0) return fresh.slice(0, count);
    const failedAt = ({ id }: Task) => this.#failures.get(id)!.at;
    return tasks.toSorted((a, b) => failedAt(a) - failedAt(b)).slice(0, count);
  }

  #counts(): readonly Count[] {
    return this.#gate.counts().map((counts, index) => ({ ...counts, handled: this.#handled[index]! }));
  }

  /** The dependencies, by their index, on which a call has failed since then. */
  #failedSince(before: readonly Count[]): readonly number[] {
    const counts = this.#gate.counts();
    return [...counts.keys()].filter((index) => counts[index]!.failed > before[index]!.failed);
  }

  #trim(now: number): void {
    for (const [id, { at }] of this.#failures) {
      if (this.#failures.size <= rememberedMax && now - at <= outageMaxMs) return;
      this.#failures.delete(id);
    }
  }
}

/** A call that succeeds proves nothing where each event needs several, and the breaker is open for another of them. */
function hasSucceeded(before: Count, after: Count, isDependencyDown: boolean): boolean {
  return after.handled > before.handled || (!isDependencyDown && after.succeeded > before.succeeded);
}
