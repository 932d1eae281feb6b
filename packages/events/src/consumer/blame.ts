import type { AttemptRecord } from '@holdfast/contracts';
import type { BreakerCounts, DependencyGate } from './dependency-gate.ts';
import type { Task } from './task.ts';

/** What was counted for one dependency, such as a database. */
export interface Count extends BreakerCounts {
  /** How many events succeeded after a successful call of the dependency. */
  readonly handled: number;
}

/** Tells whether an event or a dependency (such as a database) caused the failure of the event. */
export interface Fault {
  /** True: the event caused the failure. False: a dependency probably did. */
  readonly isOwn: boolean;
  /** The dependencies whose calls failed, as indexes of `DependencyGate.names`. */
  readonly failedDependencies: readonly number[];
  /** True: all circuit breakers of one of the `failedDependencies` are open or half-open. */
  readonly isDependencyDown: boolean;
  /** True: other events succeeded with the dependency between two failures of this event. */
  readonly isProvenOwn: boolean;
  /** How many earlier failures count as attempts from now on. Until now, a dependency was blamed for these failures. */
  readonly uncounted: number;
  /** The attempt record of the last of these failures, which is not stored yet; `undefined`: there is none. */
  readonly lastUncounted: AttemptRecord | undefined;
}

/** What is remembered of an event that failed together with a dependency. */
interface Failure {
  readonly at: number;
  /** The counts at the last failure of the event. Later successes belong to other events. */
  readonly counts: readonly Count[];
  /** True: other events succeeded between two failures of this event. */
  readonly isProvenOwn: boolean;
  readonly uncounted: number;
  readonly lastUncounted: AttemptRecord | undefined;
}

/** If only one event fails for 4 hours, the event is the cause. Before that, an outage is possible. */
export const outageMaxMs = 4 * 60 * 60 * 1000;

/** When there are more failed events, the oldest is forgotten. */
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
 * Decides whether an event or a dependency caused a failure. The event did if one of these is true:
 *
 * - No call of a dependency failed while the handler ran.
 * - Another event succeeded with the dependency since the last failure of this event.
 * - Only this event fails, and other events succeeded between two earlier failures of it.
 * - Only this event has failed for `aloneMaxMs`.
 *
 * All data is in memory, so nothing is known after a restart.
 */
export class Blame {
  readonly #gate: DependencyGate;
  /** For each dependency of `DependencyGate.names`: how many events succeeded with it. */
  readonly #handled: number[];
  /** The failures by event id, the oldest first. */
  readonly #failures = new Map<string, Failure>();
  /** How often an open breaker has refused the calls of an event, by event id, the oldest first. */
  readonly #shutOut = new Map<string, number>();
  /** The event that failed last. Since the time `since`, no other event has failed. */
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
   * Decides whether the event caused its failure. If no other event fails for `aloneMaxMs`, this event is the cause.
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
   * Remembers the failure of `task`. `lastUncounted` is its record, if the failure does not count as an attempt yet.
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

  /** An open breaker has refused a call of the event. Returns how often that was so before. */
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
   * Chooses at most `count` events to test a dependency. Events that have not failed are best, then the oldest
   * failures.
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
 * True: other events succeeded with the dependency. While the dependency is down, whole events must have succeeded: one
 * successful call proves little, because an event may need several calls.
 */
function hasSucceeded(before: Count, after: Count, isDependencyDown: boolean): boolean {
  return after.handled > before.handled || (!isDependencyDown && after.succeeded > before.succeeded);
}
