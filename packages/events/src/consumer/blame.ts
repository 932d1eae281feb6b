import type { AttemptRecord } from '@holdfast/contracts';
import type { BreakerCounts, DependencyGate } from './dependency-gate.ts';
import type { Task } from './task.ts';

/** The counters of one dependency (another system that handlers call, such as a database). */
export interface Count extends BreakerCounts {
  /** How many events were handled successfully and had a successful call of this dependency. */
  readonly handled: number;
}

/**
 * The answer to the question: did the event itself cause its failure, or did a dependency such as a database?
 */
export interface Fault {
  /** True: the event caused the failure. False: a dependency probably did. */
  readonly isOwn: boolean;
  /**
   * The dependencies whose calls failed while the handler ran. Each number is an index into
   * `DependencyGate.names`.
   */
  readonly failedDependencies: readonly number[];
  /**
   * True: for at least one of the `failedDependencies`, no circuit breaker is closed. So this dependency is
   * down.
   */
  readonly isDependencyDown: boolean;
  /**
   * True: other events succeeded with the same dependency between two failures of this event. So the event
   * causes its failures.
   */
  readonly isProvenOwn: boolean;
  /**
   * How many earlier failures of this event count as attempts from now on. They were blamed on a dependency
   * when they happened, so they were not counted.
   */
  readonly uncounted: number;
  /**
   * The attempt record of the last failure that was blamed on a dependency. The store does not have this record
   * yet. `undefined`: no failure was blamed on one.
   */
  readonly lastUncounted: AttemptRecord | undefined;
}

/** The last failure of an event that failed while calls of a dependency failed. */
interface Failure {
  readonly at: number;
  /**
   * The counters of each dependency when this event failed. If they rise before its next attempt, other
   * events succeeded.
   */
  readonly counts: readonly Count[];
  /** True: other events succeeded with the dependency between two failures of this event. */
  readonly isProvenOwn: boolean;
  readonly uncounted: number;
  readonly lastUncounted: AttemptRecord | undefined;
}

/**
 * If only one event fails for 4 hours, the event is the cause. Before that, an outage of a dependency is
 * possible.
 */
export const outageMaxMs = 4 * 60 * 60 * 1000;

/** At most this many failed events are remembered. After that, the oldest one is removed. */
const rememberedMax = 1000;
const shutOutMax = 10_000;

const OWN: Fault = {
  isOwn: true,
  failedDependencies: [],
  isDependencyDown: false,
  isProvenOwn: false,
  uncounted: 0,
  lastUncounted: undefined,
};

/**
 * Decides whether an event itself or a dependency (such as a database) caused a failure. The event is the
 * cause if one of these is true:
 *
 * - No call of a dependency failed while the handler ran.
 * - Other events succeeded with the dependency since the last failure of this event.
 * - Only this event fails, and other events succeeded between two of its earlier failures.
 * - Only this event has failed for `aloneMaxMs`.
 *
 * All data is in memory, so it is lost when the process restarts.
 */
export class Blame {
  readonly #gate: DependencyGate;
  /** How many events succeeded with each dependency, in the order of `DependencyGate.names`. */
  readonly #handled: number[];
  /** The last failure of each event, by event id. The oldest failure comes first. */
  readonly #failures = new Map<string, Failure>();
  /**
   * How often an open breaker refused a call of the handler, by event id. The event that was refused least
   * recently comes first.
   */
  readonly #shutOut = new Map<string, number>();
  /** The event that failed last. No other event has failed since the time `since`. */
  #last: { readonly id: string; readonly since: number } | undefined;

  constructor(gate: DependencyGate) {
    this.#gate = gate;
    this.#handled = gate.names.map(() => 0);
  }

  get remembered(): number {
    return this.#failures.size;
  }

  begin(task: Task): void {
    if (this.#gate.hasDependencies) task.countsBefore = this.#counts();
  }

  succeeded({ countsBefore }: Task): void {
    if (!countsBefore) return;
    for (const [index, { succeeded }] of this.#gate.counts().entries())
      if (succeeded > countsBefore[index]!.succeeded) this.#handled[index]! += 1;
  }

  /**
   * Decides whether the event itself caused its failure. If no other event has failed for `aloneMaxMs`, this
   * event is the cause.
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
   * Remembers the failure of `task`. If the failure is not counted as an attempt yet, `lastUncounted` is its
   * attempt record.
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

  /**
   * Call it when an open breaker has refused a call that the handler of this event made. Returns how often
   * that happened before.
   */
  shutOut(id: string): number {
    const before = this.timesShutOut(id);
    this.#shutOut.delete(id);
    this.#shutOut.set(id, before + 1);
    if (this.#shutOut.size > shutOutMax) this.#shutOut.delete(this.#shutOut.keys().next().value!);
    return before;
  }

  timesShutOut(id: string): number {
    return this.#shutOut.get(id) ?? 0;
  }

  forget(id: string): void {
    this.#shutOut.delete(id);
    this.#failures.delete(id);
    if (this.#last?.id === id) this.#last = undefined;
  }

  /**
   * Chooses at most `count` events whose handlers test whether a dependency works again. Events that have not
   * failed are chosen first, then the events that failed longest ago.
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
 * True: other events succeeded with the dependency between `before` and `after`. While the dependency is
 * down, a whole event must have succeeded: one successful call proves little, because a handler may need
 * several calls.
 */
function hasSucceeded(before: Count, after: Count, isDependencyDown: boolean): boolean {
  return after.handled > before.handled || (!isDependencyDown && after.succeeded > before.succeeded);
}
