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
 * The context of one attempt in a policy without guards (breaker, timeout, …). It has few fields, because it is created
 * for each call.
 *
 * The constructor sets the fields, because class fields with initial values would make creation twice as slow.
 */
export class Attempt implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  /** Grows with each run and attempt that begins. A run inside this attempt has a higher number. */
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

  /** Without guards, no attempt times out. */
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

  /** Makes `handle` abort the call instead of an AbortController. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /** Aborts the signal, because nobody waits for this attempt any more. */
  abandon(_now: number, reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/**
 * An attempt in a policy with guards (breaker, bulkhead, timeout, …). It is its own alarm: first for the attempt
 * timeout, then for the permit of an abandoned call.
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
  declare readonly ticket: number;
  /** True: the attempt holds a permit of the target's bulkhead. */
  declare permit: boolean;
  /** True: the work no longer waits for this attempt. */
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
   * Aborts the signal, because nobody waits for this attempt any more. The call may still run, and keeps its permit for
   * up to 30 s.
   */
  abandon(now: number, reason: unknown): void {
    this.abandoned = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
    if (this.permit) this.plan.clock.set(this, now + permitGraceMs);
  }

  /** Returns the permit to the bulkhead. Call it when the call has ended. */
  release(now: number): void {
    if (!this.permit) return;
    this.permit = false;
    if (this.abandoned) this.plan.clock.clear(this);
    this.targetState.bulkhead?.leave(now);
  }

  /** The abandoned call still runs after 30 s: takes its permit back and counts a zombie. */
  ring(now: number): void {
    const { counters, reporter } = this.plan;
    this.permit = false;
    counters.zombies++;
    reporter?.zombie(this, now);
    this.targetState.bulkhead?.forfeit(now);
  }
}

const permitGraceMs = 30_000;
