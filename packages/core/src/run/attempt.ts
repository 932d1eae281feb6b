import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { nextSerial } from '../report/story.ts';
import { Alarm } from '../time/clock.ts';
import type { Context } from './run-options.ts';

/** Aborts the call of an attempt, like an AbortController. */
export interface AbortHandle {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/**
 * The context of one attempt in a policy without guards (breaker, timeout, …). It has few fields, because one
 * is created for each call.
 *
 * The constructor sets the fields: class fields with initial values would make it twice as slow.
 */
export class Attempt implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  /**
   * The serial number of this attempt. Runs and attempts that begin later, such as a run inside this attempt,
   * have a higher number.
   */
  declare readonly serial: number;
  declare controller: AbortHandle | undefined;

  constructor(plan: Plan, attempt: number, patienceEndsAt: number) {
    this.plan = plan;
    this.attempt = attempt;
    this.patienceEndsAt = patienceEndsAt;
    this.serial = nextSerial();
    this.controller = undefined;
  }

  get target(): string | undefined {
    return undefined;
  }

  /** Always false: without guards (breaker, timeout, …), no attempt times out. */
  get abandoned(): boolean {
    return false;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.plan.clock.now());
  }

  /** Uses `handle` to abort the call, instead of an AbortController. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /** Aborts the signal, because the run does not need the result of this attempt. */
  abandon(_now: number, reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/**
 * An attempt in a policy with guards (breaker, bulkhead, timeout, …). The object is also an alarm, which
 * rings at the attempt timeout. For an abandoned call the alarm rings later, to take back the call's permit.
 */
export class GuardedAttempt extends Alarm implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  declare readonly serial: number;
  declare controller: AbortHandle | undefined;
  /** The state that the policy keeps for the target. (`target` is only the name.) */
  declare readonly targetState: Target;
  declare readonly startedAt: number;
  declare readonly ticket: number;
  /** True: the attempt holds a permit (the right to run) of the target's bulkhead. */
  declare permit: boolean;
  /**
   * True: the run does not wait for this attempt, because it timed out, was cancelled, or another attempt was
   * faster.
   */
  declare abandoned: boolean;

  constructor(
    plan: Plan,
    attempt: number,
    patienceEndsAt: number,
    targetState: Target,
    startedAt: number,
    endsAt: number,
    ticket: number,
  ) {
    super();
    this.at = endsAt;
    this.plan = plan;
    this.attempt = attempt;
    this.patienceEndsAt = patienceEndsAt;
    this.serial = nextSerial();
    this.controller = undefined;
    this.targetState = targetState;
    this.startedAt = startedAt;
    this.ticket = ticket;
    this.permit = targetState.bulkhead !== undefined;
    this.abandoned = false;
  }

  get target(): string | undefined {
    return this.targetState.name;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.plan.clock.now());
  }

  /** When the attempt times out; Infinity if it has no time limit. */
  get endsAt(): number {
    return this.at;
  }

  /** Uses `handle` to abort the call, instead of an AbortController. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /**
   * Aborts the signal, because the run does not need the result of this attempt. The operation may still run,
   * and keeps its permit of the bulkhead (the limit of calls in flight) for up to 30 s.
   */
  abandon(now: number, reason: unknown): void {
    this.abandoned = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
    if (this.permit) this.plan.clock.set(this, now + permitGraceMs);
  }

  /**
   * Gives the permit back to the bulkhead (the limit of calls in flight). Call this method when the operation
   * has ended.
   */
  release(now: number): void {
    if (!this.permit) return;
    this.permit = false;
    if (this.abandoned) this.plan.clock.clear(this);
    this.targetState.bulkhead?.leave(now);
  }

  /**
   * Called 30 s after a call was abandoned, if it still runs. Its permit (the right to run) is taken back,
   * and it is counted as a zombie.
   */
  ring(now: number): void {
    const { counters, reporter } = this.plan;
    this.permit = false;
    counters.zombies++;
    reporter?.zombie(this, now);
    this.targetState.bulkhead?.forfeit(now);
  }
}

const permitGraceMs = 30_000;
