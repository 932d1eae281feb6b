import { Flight } from './attempt.ts';
import { land, launch } from './flight-deck.ts';
import type { GuardedWork } from './guarded-work.ts';
import type { Judgement, Outcome } from './outcome.ts';
import type { Operation, Plan } from './plan.ts';
import { follow, type Run, returnOrThrow } from './shell.ts';
import { type Refused, refuseSwiftly } from './swift-refusal.ts';
import { DONE } from './work.ts';

const okay: Judgement = { class: 'ok' };

/**
 * The short way through the guards, for a run that asks for nothing special and finds all of them open. A success needs
 * no machine: it is built when an attempt fails or its time is up, and takes over from there.
 */
export function runSwiftly<T>(plan: Plan, operation: Operation<T>): Promise<T> | undefined {
  const target = plan.targetOf!(undefined, 0);
  const { breaker, bulkhead, budget } = target;
  if (breaker && !breaker.isClosed) {
    const refused = refuseSwiftly(plan);
    return refused && later(refused);
  }
  if (plan.reporter?.isHeard() || (bulkhead && !bulkhead.tryEnter())) return undefined;
  const now = plan.isTimed ? plan.clock.now() : 0;
  plan.counters.operations++;
  budget?.firstTry(now);
  const flight = launch<SwiftFlight<T>>(SwiftFlight, plan, target, 1, now, now + plan.patienceMs)!;
  if (flight.endsAt < Infinity) {
    flight.operation = operation;
    starting = flight;
    return new Promise<T>(startFlight);
  }
  return call(operation, flight).then(
    (value) => arrive(flight, operation, value),
    (error) => goOn(flight, operation, { ok: false, error }),
  );
}

/**
 * Rejects a microtask later, when somebody listens: a rejection that nobody hears yet costs half as much again, and so does
 * one that is thrown.
 */
function later({ error }: Refused): Promise<never> {
  return new Promise((_, reject) => queueMicrotask(() => reject(error)));
}

/** Hands a flight to the executor, which so needs no closure of its own: a tenth of what a call allocates. */
let starting: { begin(resolve: unknown): void };
function startFlight(resolve: (value: never) => void): void {
  starting.begin(resolve);
}

/** Without a limit in time, the promise of the operation is passed on. */
function arrive<T>(flight: Flight, operation: Operation<T>, value: T): T | Promise<T> {
  return isPlain(flight, value)
    ? succeed(flight, flight.plan.clock.now(), value)
    : goOn(flight, operation, { ok: true, value });
}

function goOn<T>(flight: Flight, operation: Operation<T>, outcome: Outcome): T | Promise<T> {
  const work = takeOver(flight);
  const step = work.settled(flight.plan.clock.now(), flight, outcome);
  if (step >= DONE) return returnOrThrow<T>(work);
  const { run, promise } = follow(work, operation, undefined, returnOrThrow<T>);
  run.go(step);
  return promise;
}

/** With one, nobody waits longer than that, whatever the operation does. */
class SwiftFlight<T> extends Flight {
  declare operation: Operation<T>;
  declare resolve: (value: T | Promise<T>) => void;
  /** What goes on when the first attempt was not simply a success. */
  declare run: Run<T> | undefined;

  begin(resolve: (value: T | Promise<T>) => void): void {
    this.resolve = resolve;
    this.run = undefined;
    call(this.operation, this).then(
      (value) => this.settled(true, value),
      (error) => this.settled(false, error),
    );
    this.plan.clock.set(this, this.at);
  }

  override ring(now: number): void {
    if (this.over) super.ring(now);
    else {
      const { work, run } = this.machine();
      run.perform(work.alarm(now));
    }
  }

  settled(ok: boolean, given: unknown): void {
    const { run } = this;
    if (run) {
      run.go(run.settled(this, ok, given));
      return;
    }
    const { clock } = this.plan;
    clock.clear(this);
    const now = clock.now();
    if (ok && isPlain(this, given)) this.resolve(succeed(this, now, given as T));
    else {
      const { work, run: made } = this.machine();
      made.go(work.settled(now, this, ok ? { ok, value: given } : { ok, error: given }));
    }
  }

  /** What goes on from here. */
  machine(): { work: GuardedWork; run: Run<T> } {
    const work = takeOver(this);
    const { run, promise } = follow(work, this.operation, undefined, returnOrThrow<T>);
    this.run = run;
    this.resolve(promise);
    return { work, run };
  }
}

/** Whether a value ends the work with no more questions. */
function isPlain({ plan }: Flight, value: unknown): boolean {
  return plan.judgesValues <= (typeof value === 'object' ? 0 : 1);
}

function succeed<T>(flight: Flight, now: number, value: T): T {
  land(flight, now, okay);
  flight.plan.counters.succeeded++;
  flight.on.budget?.success(now);
  return value;
}

function takeOver(flight: Flight): GuardedWork {
  const { plan, on, startedAt, patienceEndsAt } = flight;
  const work = plan.work(
    undefined,
    plan.isTimed ? startedAt : plan.clock.now(),
    patienceEndsAt,
  ) as GuardedWork;
  work.adopt(flight, on.budget);
  return work;
}

function call<T>(operation: Operation<T>, attempt: Flight): Promise<T> {
  try {
    return Promise.resolve(operation(attempt));
  } catch (error) {
    return Promise.reject(error);
  }
}
