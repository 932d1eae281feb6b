import type { Alarm } from './clock.ts';
import type { Context, Plan } from './plan.ts';
import { endingsSoFar } from './story.ts';
import type { Target } from './target.ts';

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
  /** Runs that had given up before it was sent: tells one that gives up inside it from an older one. */
  declare readonly since: number;
  declare controller: AbortController | undefined;

  constructor(plan: Plan, attempt: number, patienceEndsAt: number) {
    this.plan = plan;
    this.attempt = attempt;
    this.patienceEndsAt = patienceEndsAt;
    this.since = endingsSoFar();
    this.controller = undefined;
  }

  get target(): string | undefined {
    return undefined;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.plan.clock.now());
  }
}

/** An attempt at a target: what the guards keep of it. */
export class Flight extends Attempt {
  declare readonly on: Target;
  declare readonly startedAt: number;
  /** When it is given up; Infinity without a limit. */
  declare readonly endsAt: number;
  /** The breaker's ticket; −1 without. */
  declare readonly ticket: number;
  /** Holds a permit of the target's bulkhead. */
  declare permit: boolean;
  /** Nobody waits for it any more: what it still gives is late. */
  declare over: boolean;
  /** Ends the hold on its permit when its call never settles. */
  declare lease: Alarm | undefined;

  constructor(
    plan: Plan,
    attempt: number,
    patienceEndsAt: number,
    on: Target,
    startedAt: number,
    endsAt: number,
    ticket: number,
  ) {
    super(plan, attempt, patienceEndsAt);
    this.on = on;
    this.startedAt = startedAt;
    this.endsAt = endsAt;
    this.ticket = ticket;
    this.permit = on.bulkhead !== undefined;
    this.over = false;
    this.lease = undefined;
  }

  override get target(): string | undefined {
    return this.on.name;
  }

  /** Nobody waits for it any more. A signal that is read for the first time after this is born aborted. */
  abandon(reason: unknown): void {
    this.over = true;
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}
