import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { nextSerial } from '../report/story.ts';
import { Alarm } from '../time/clock.ts';
import type { Context } from './run-options.ts';

/** Aborts the call of an attempt: an AbortController, or a cheaper object of the same shape. */
export interface AbortHandle {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/**
 * The context of one attempt in a policy without guards (breaker, bulkhead, timeout and so on). A successful run
 * allocates little else, so this class has few fields: an object with a dozen fields would cost as much as the promise
 * of the run.
 *
 * Objects that are created for each call declare their fields and set them in the constructor: class fields with
 * initial values make the creation of a derived class more than twice as slow.
 */
export class Attempt implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  /**
   * A number that grows with each run and attempt that begins. It tells whether another run began inside this attempt.
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

  /** Always false, because without guards no attempt times out. */
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

  /** Makes `handle` abort the call instead of an AbortController: a socket, or an object that does nothing. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /**
   * Aborts the signal, because the work no longer waits for this attempt. A signal that is first read later is already
   * aborted.
   */
  abandon(_now: number, reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/**
 * An attempt at a target in a policy with guards. It holds a ticket of the breaker and a permit of the bulkhead. It is
 * its own alarm: for the attempt timeout and, after the attempt was abandoned, for the time limit of the permit.
 */
export class GuardedAttempt extends Alarm implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  declare readonly serial: number;
  declare controller: AbortHandle | undefined;
  /** The state that the policy keeps for the target; `target` is only its name. */
  declare readonly targetState: Target;
  declare readonly startedAt: number;
  /** The number that the breaker gave to this attempt when the breaker admitted it. */
  declare readonly ticket: number;
  /** True: the attempt holds a permit of the target's bulkhead. */
  declare permit: boolean;
  /** True: the work no longer waits for this attempt and ignores its outcome. */
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

  /** When the attempt times out; Infinity without a limit. */
  get endsAt(): number {
    return this.at;
  }

  /** Makes `handle` abort the call instead of an AbortController. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /**
   * Aborts the signal, because the work no longer waits for this attempt. A signal that is first read later is already
   * aborted. The call may still run. It keeps its permit until it ends, but for 30 s at most.
   */
  abandon(now: number, reason: unknown): void {
    this.abandoned = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
    if (this.permit) this.plan.clock.set(this, now + permitGraceMs);
  }

  /** Returns the permit to the bulkhead when the call has ended. */
  release(now: number): void {
    if (!this.permit) return;
    this.permit = false;
    if (this.abandoned) this.plan.clock.clear(this);
    this.targetState.bulkhead?.leave(now);
  }

  /**
   * Runs 30 s after the attempt was abandoned, if its call has not ended: takes the permit back and counts a zombie.
   */
  ring(now: number): void {
    const { counters, reporter } = this.plan;
    this.permit = false;
    counters.zombies++;
    reporter?.zombie(this, now);
    this.targetState.bulkhead?.forfeit(now);
  }
}

/** How long a call that was abandoned keeps its permit. */
const permitGraceMs = 30_000;
