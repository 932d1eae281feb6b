import type { AttemptRecord } from '@holdfast/contracts';
import type { BreakerCounts, DependencyGate } from './dependency-gate.ts';
import type { Task } from './task.ts';

/** The numbers of calls and handled events that were counted for one dependency. */
export interface Count extends BreakerCounts {
  /** How many events were handled successfully by a handler that also called the dependency successfully. */
  readonly handled: number;
}

/** Tells whether an event itself causes its failure, or a dependency (such as a database) does. */
export interface Fault {
  /** True: the event itself causes the failure. False: as far as is known, a dependency causes the failure. */
  readonly isOwn: boolean;
  /** The dependencies of which a call failed while the handler ran, as indexes of `DependencyGate.names`. */
  readonly failedDependencies: readonly number[];
  /** True: one of the `failedDependencies` has no closed circuit breaker. */
  readonly isDependencyDown: boolean;
  /** True: between two failures of this event, other events succeeded with one of the `failedDependencies`. */
  readonly isProvenOwn: boolean;
  /**
   * How many failed probes of this event count as attempts only now. A probe is an event that tests a failing
   * dependency. At first, the failure of a probe is blamed on the dependency and is not stored as an attempt.
   */
  readonly uncounted: number;
  /** The attempt record of the last of these probes. The store does not have this record yet. */
  readonly lastUncounted: AttemptRecord | undefined;
}

/** What is remembered of an event that failed while a dependency failed. */
interface Failure {
  readonly at: number;
  /** The counted calls at the last failure of the event. All later successes belong to other events. */
  readonly counts: readonly Count[];
  /** True: other events succeeded between two failures of this event. */
  readonly isProvenOwn: boolean;
  readonly uncounted: number;
  readonly lastUncounted: AttemptRecord | undefined;
}

/**
 * An event that fails for 4 hours while no other event fails causes its failures itself. Before that, an outage is
 * possible.
 */
export const outageMaxMs = 4 * 60 * 60 * 1000;

/** How many failed events are remembered. When there are more, the event whose failure is oldest is forgotten. */
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
 * Decides whether an event itself causes its failure, or a dependency does. The event causes it in these cases:
 *
 * - No call of a dependency failed while the handler ran.
 * - Since the last failure of the event, another event was handled with the dependency. While the breaker of the
 *   dependency is closed, any successful call of it is enough.
 * - No other event fails now, and either other events succeeded between two earlier failures of this event, or this
 *   event has been the only one to fail for `aloneMaxMs`.
 *
 * All data is in memory. After a restart nothing is known and all breakers are closed. Until a breaker opens, each
 * failure counts as an attempt, but the last attempt of an event is not used up.
 */
export class Blame {
  readonly #gate: DependencyGate;
  /**
   * For each dependency, the number of events that were handled with it. The indexes are the same as in
   * `DependencyGate.names`.
   */
  readonly #handled: number[];
  /** The failures by event id. The oldest failure comes first. */
  readonly #failures = new Map<string, Failure>();
  /** The event that failed last. `since` is the time from which only this event has failed. */
  #last: { readonly id: string; readonly since: number } | undefined;

  constructor(gate: DependencyGate) {
    this.#gate = gate;
    this.#handled = gate.names.map(() => 0);
  }

  get remembered(): number {
    return this.#failures.size;
  }

  /** Call it before a handler runs. */
  begin(task: Task): void {
    if (this.#gate.hasDependencies) task.countsBefore = this.#counts();
  }

  /** Call it when a handler has succeeded. */
  succeeded({ countsBefore }: Task): void {
    if (!countsBefore) return;
    for (const [index, { succeeded }] of this.#gate.counts().entries())
      if (succeeded > countsBefore[index]!.succeeded) this.#handled[index]! += 1;
  }

  /**
   * Decides what causes the failure of `task`. If only this event has failed for `aloneMaxMs`, the event itself is the
   * cause.
   */
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

  /**
   * Remembers the failure of `task`. `lastUncounted` is the record of this failure, if the failure does not count as an
   * attempt for now.
   */
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

  /** Call it when the event has left the topic. */
  forget(id: string): void {
    this.#failures.delete(id);
    if (this.#last?.id === id) this.#last = undefined;
  }

  /**
   * Chooses at most `count` events to test a dependency that may still be down. It prefers events that have not failed;
   * if all have failed, it chooses those whose failures are oldest.
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

  /** Returns the indexes of the dependencies of which a call has failed since `before`. */
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

/**
 * True: other events succeeded with the dependency. While its breaker is open, a single successful call is not enough,
 * because an event may need several calls.
 */
function hasSucceeded(before: Count, after: Count, isDependencyDown: boolean): boolean {
  return after.handled > before.handled || (!isDependencyDown && after.succeeded > before.succeeded);
}
