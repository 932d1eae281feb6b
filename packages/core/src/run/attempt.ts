import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { nextSerial } from '../report/story.ts';
import { Alarm } from '../time/clock.ts';
import type { Context } from './run-options.ts';

/** What aborts the call of an attempt: an AbortController, or something that does without its cost. */
export interface AbortHandle {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/**
 * The context of one attempt without guards. It is all that a success allocates, so it has as few fields as possible: a
 * dozen would cost as much as the promise.
 *
 * In objects that are made for each call, fields are declared and set in the constructor: a derived class that defines
 * them takes more than twice as long to make.
 */
export class Attempt implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  /** Counts runs and attempts by when they began: tells a run inside this attempt from one beside it. */
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

  /** Without guards nothing ends an attempt but its own outcome. */
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

  /** Lets `handle` abort the call instead of an AbortController: a socket, or nothing at all in the simulator. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /** The work does not wait for it any more. A signal that is read for the first time after this is aborted from the start. */
  abandon(_now: number, reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/**
 * An attempt at a target, with what it holds of the guards. It is its own alarm: for the attempt timeout, and once it is
 * abandoned, for the lease of its permit.
 */
export class GuardedAttempt extends Alarm implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  declare readonly serial: number;
  declare controller: AbortHandle | undefined;
  declare readonly targetState: Target;
  declare readonly startedAt: number;
  /** The breaker's ticket. */
  declare readonly ticket: number;
  /** Holds a permit of the target's bulkhead. */
  declare permit: boolean;
  /** The work does not wait for it any more: its outcome is late. */
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

  /** Lets `handle` abort the call instead of an AbortController. */
  abortThrough(handle: AbortHandle): void {
    this.controller = handle;
  }

  /**
   * The work does not wait for it any more. A signal that is read for the first time after this is aborted from the start.
   * Its call may go on, and keeps its permit until it ends, or for 30 s.
   */
  abandon(now: number, reason: unknown): void {
    this.abandoned = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
    if (this.permit) this.plan.clock.set(this, now + permitGraceMs);
  }

  /** Gives back the permit that its call held. */
  release(now: number): void {
    if (!this.permit) return;
    this.permit = false;
    if (this.abandoned) this.plan.clock.clear(this);
    this.targetState.bulkhead?.leave(now);
  }

  /** The call has not ended 30 s after it was abandoned: it is counted as a zombie, and its permit is given away. */
  ring(now: number): void {
    const { counters, reporter } = this.plan;
    this.permit = false;
    counters.zombies++;
    reporter?.zombie(this, now);
    this.targetState.bulkhead?.forfeit(now);
  }
}

/** How long an abandoned call keeps its permit. */
const permitGraceMs = 30_000;
