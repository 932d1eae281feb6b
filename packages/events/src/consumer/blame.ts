import type { AttemptRecord } from '@holdfast/contracts';
import type { BreakerCounts, DependencyGate } from './dependency-gate.ts';
import type { Task } from './task.ts';

/** What has been counted for one dependency so far. */
export interface Count extends BreakerCounts {
  /** Events that were handled, with a successful call of the dependency meanwhile. */
  readonly handled: number;
}

/** Whether a failure is the event's own or a dependency's. */
export interface Fault {
  /** True: the event's own. False: a dependency's, as far as is known. */
  readonly isOwn: boolean;
  /** Dependencies with a failed call while the handler ran, by their index in the gate. */
  readonly failedDependencies: readonly number[];
  /** One of them has no closed breaker. */
  readonly isDependencyDown: boolean;
  /** Other events have succeeded with one of them between two failures of this event, now or before. */
  readonly isProvenOwn: boolean;
  /** Failed probes that were not counted as attempts when they failed, and count from now on. The store does not know of them. */
  readonly uncounted: number;
  /** The last of those probes; it is not in the story yet. */
  readonly lastUncounted: AttemptRecord | undefined;
}

/** An event that failed while a dependency failed. */
interface Failure {
  readonly at: number;
  /** Counts at its last failure. Successes after that belong to other events. */
  readonly counts: readonly Count[];
  /** Other events have succeeded between two of its failures. */
  readonly isProvenOwn: boolean;
  readonly uncounted: number;
  readonly lastUncounted: AttemptRecord | undefined;
}

/** After 4 hours as the only failing event, its failures are its own. Until then they may be an outage. */
export const outageMaxMs = 4 * 60 * 60 * 1000;

/** The most failed events that are remembered. The event with the oldest failure is forgotten first. */
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
 * Decides whether a failure is the event's own or a dependency's. It is the event's own when
 *
 * - no call of a dependency failed while its handler ran, or
 * - others have succeeded since the event last failed: events were handled with the dependency, or, while its breaker is closed,
 *   any call of it succeeded, or
 * - no other event fails now, and either others have succeeded between two earlier failures of the event, or it has been the only
 *   one to fail for `aloneMaxMs`.
 *
 * All of it is kept in memory. After a restart nothing is known and breakers are closed: until they open, each failure of an
 * event counts as an attempt, except for its last attempt.
 */
export class Blame {
  readonly #gate: DependencyGate;
  /** Events handled with each dependency, by its index in the gate. */
  readonly #handled: number[];
  /** By event id, the oldest failure first. */
  readonly #failures = new Map<string, Failure>();
  /** The event that failed last. `since`: its first failure after that of another event. */
  #last: { readonly id: string; readonly since: number } | undefined;

  constructor(gate: DependencyGate) {
    this.#gate = gate;
    this.#handled = gate.names.map(() => 0);
  }

  get remembered(): number {
    return this.#failures.size;
  }

  /** To be called before a handler runs. */
  begin(task: Task): void {
    if (this.#gate.hasDependencies) task.countsBefore = this.#counts();
  }

  /** To be called when a handler has succeeded. */
  succeeded({ countsBefore }: Task): void {
    if (!countsBefore) return;
    for (const [index, { succeeded }] of this.#gate.counts().entries())
      if (succeeded > countsBefore[index]!.succeeded) this.#handled[index]! += 1;
  }

  /** Whose failure it is. `aloneMaxMs`: after failing for this long while no other event does, it is the event's own. */
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

  /** Remembers the failure of `task`. `lastUncounted`: its record, if it is not counted as an attempt for now. */
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

  /** To be called when the event has left the topic. */
  forget(id: string): void {
    this.#failures.delete(id);
    if (this.#last?.id === id) this.#last = undefined;
  }

  /**
   * Chooses at most `count` tasks as probes: events that have not failed. If all have failed, those with the oldest failures.
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

  /** Dependencies with a failed call since `before`, by their index. */
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

/** While a breaker is open, a single successful call proves nothing: an event may need several calls. */
function hasSucceeded(before: Count, after: Count, isDependencyDown: boolean): boolean {
  return after.handled > before.handled || (!isDependencyDown && after.succeeded > before.succeeded);
}
