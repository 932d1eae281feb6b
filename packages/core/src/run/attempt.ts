import type { Target } from '../machines/target.ts';
import type { Context, Plan } from '../policy/plan.ts';
import { nextMoment } from '../report/story.ts';
import { Alarm } from '../time/clock.ts';

/**
 * The context of one attempt. It is all that a success allocates where nothing stands around the attempts,
 * so it has as few fields as it can: a dozen would cost as much as the promise.
 *
 * Here and in what else is made for each call, fields are declared and set in the constructor: a derived class that
 * defines them takes more than twice as long to make.
 */
export class Attempt implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  /** When it began, among all runs and attempts: tells a run inside it from one beside it. */
  declare readonly since: number;
  declare controller: AbortController | undefined;

  constructor(plan: Plan, attempt: number, patienceEndsAt: number) {
    this.plan = plan;
    this.attempt = attempt;
    this.patienceEndsAt = patienceEndsAt;
    this.since = nextMoment();
    this.controller = undefined;
  }

  get target(): string | undefined {
    return undefined;
  }

  /** Nothing ends it but its own outcome, where nothing stands around the attempts. */
  get over(): boolean {
    return false;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.plan.clock.now());
  }

  /** Nobody waits for it any more. A signal that is read for the first time after this is born aborted. */
  abandon(_now: number, reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/**
 * An attempt at a target: what the guards keep of it. It is its own alarm, which rings when its time is up and, where
 * nobody waits for it any more, when its permit has been held for too long.
 */
export class GuardedAttempt extends Alarm implements Context {
  declare readonly plan: Plan;
  declare readonly attempt: number;
  declare readonly patienceEndsAt: number;
  declare readonly since: number;
  declare controller: AbortController | undefined;
  declare readonly on: Target;
  declare readonly startedAt: number;
  /** The breaker's ticket. */
  declare readonly ticket: number;
  /** Holds a permit of the target's bulkhead. */
  declare permit: boolean;
  /** Nobody waits for it any more: what it still gives is late. */
  declare over: boolean;

  constructor(
    plan: Plan,
    attempt: number,
    patienceEndsAt: number,
    on: Target,
    startedAt: number,
    endsAt: number,
    ticket: number,
  ) {
    super();
    this.at = endsAt;
    this.plan = plan;
    this.attempt = attempt;
    this.patienceEndsAt = patienceEndsAt;
    this.since = nextMoment();
    this.controller = undefined;
    this.on = on;
    this.startedAt = startedAt;
    this.ticket = ticket;
    this.permit = on.bulkhead !== undefined;
    this.over = false;
  }

  get target(): string | undefined {
    return this.on.name;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.plan.clock.now());
  }

  /** When it is given up, until it is; Infinity without a limit. */
  get endsAt(): number {
    return this.at;
  }

  /**
   * Nobody waits for it any more. A signal that is read for the first time after this is born aborted. Its call may go
   * on, and keeps its permit until it settles, or for `permitGraceMs`.
   */
  abandon(now: number, reason: unknown): void {
    this.over = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
    if (this.permit) this.plan.clock.set(this, now + permitGraceMs);
  }

  /** Gives back the permit that its call held. */
  release(now: number): void {
    if (!this.permit) return;
    this.permit = false;
    if (this.over) this.plan.clock.clear(this);
    this.on.bulkhead?.leave(now);
  }

  /** Its call has outlived everybody's patience: a zombie. */
  ring(now: number): void {
    const { counters, reporter } = this.plan;
    this.permit = false;
    counters.zombies++;
    reporter?.zombie(this, now);
    this.on.bulkhead?.forfeit(now);
  }
}

/** How long a call that nobody waits for keeps its permit. */
const permitGraceMs = 30_000;
