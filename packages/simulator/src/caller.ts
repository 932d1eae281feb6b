import { Alarm, type Policy, type Priority, type RunOptions, type StopReason, storyOf } from 'holdfast';
import {
  type AbortHandle,
  type Attempt,
  DONE,
  type Driver,
  type GuardedAttempt,
  machineFor,
  SEND,
  type Step,
  schedule,
  startPlainAttempt,
  stepAfter,
  stepAt,
  type Work,
} from 'holdfast/machines';
import type { Cache } from './cache.ts';
import { Job } from './job.ts';
import type { Service } from './service.ts';
import type { CallerTally } from './tally.ts';
import { ANSWERED, ARRIVED, DONE_WELL, FAILED, GAVE_UP, SENT } from './trace.ts';
import type { World } from './world.ts';

/** The part of the simulation that made a call: clients, or a service. `ended` receives the result. */
export interface Origin {
  /** The time, in ms, at which the incoming call times out. Clients have none. */
  readonly expiresAt?: number | undefined;
  ended(call: Call, ok: boolean): void;
}

export interface CallerSettings {
  readonly id: number;
  readonly policy: Policy;
  readonly service: Service;
  readonly tally: CallerTally;
  readonly cache?: Cache | undefined;
  readonly route?: string | undefined;
  /** How long, in ms, the clients wait for a call. The policy's `patience` can end the call earlier. */
  readonly patienceMs?: number | undefined;
  readonly leavesAfterMs?: number | undefined;
  readonly priority?: Priority | undefined;
  readonly failing?: number | undefined;
  readonly poisonMs?: number | undefined;
  /** False: another service in the chain retries, so this caller must not retry as well. */
  readonly isOwner?: boolean | undefined;
  /** True: a call gets no more time than is left for the incoming call. */
  readonly knowsPatience?: boolean | undefined;
}

const ranks: Record<Priority, number> = { critical: 0, default: 1, sheddable: 2 };

export class Caller {
  readonly world: World;
  readonly settings: CallerSettings;
  readonly tally: CallerTally;
  readonly service: Service;
  readonly rank: number;
  /** The options for `policy.run`. With undefined, the policy can take its faster path. */
  readonly options: RunOptions | undefined;
  readonly failing: number;
  readonly poisonUs: number | undefined;
  /**
   * True if a successful first attempt can skip the state machine of the policy, as in `policy.run`. This is
   * faster.
   */
  readonly canSkipMachine: boolean;
  readonly #isPromised: boolean;
  #serial = 0;

  constructor(world: World, settings: CallerSettings) {
    const { service, tally, policy } = settings;
    this.world = world;
    this.settings = settings;
    this.tally = tally;
    this.service = service;
    this.rank = ranks[settings.priority ?? 'default'];
    this.options = optionsOf(settings);
    this.failing = settings.failing ?? 0;
    this.poisonUs = settings.poisonMs === undefined ? undefined : Math.round(settings.poisonMs * 1000);
    const isSpecial = this.options || settings.knowsPatience || settings.leavesAfterMs !== undefined;
    this.canSkipMachine = !isSpecial && policy.plan.canSkipMachine;
    // The policy parts cache, fallback and mode are async functions, so they need promises.
    this.#isPromised = world.isPromised;
    if (policy.plan.runLayers && !this.#isPromised) {
      throw new TypeError(
        `cache, fallback and mode need the async driver, and ${policy.name ?? 'a policy'} has one.`,
      );
    }
  }

  ask(origin: Origin, client = 0, poison = false): void {
    const { cache } = this.settings;
    if (cache) cache.call(this, origin, client, poison);
    else this.call(origin, client, poison);
  }

  /**
   * Begins a call. The origin chooses the number `client` and gets it back in `ended`. A `poison` call fails
   * at every attempt.
   */
  call(origin: Origin, client = 0, poison = false): Call {
    const { world, tally } = this;
    const { nowUs } = world.timeline;
    const serial = (this.settings.id << 20) + this.#serial++;
    const call: Call = this.#isPromised
      ? new PromisedCall(this, origin, client, serial, nowUs, poison)
      : new DirectCall(this, origin, client, serial, nowUs, poison);
    tally.begun.add(nowUs);
    tally.open++;
    world.trace.note(nowUs, serial, ARRIVED);
    call.begin();
    return call;
  }

  /** Begins a call that sends no request: it gets its result from the cache or from another pending call. */
  join(origin: Origin, client: number): Joined {
    const { nowUs } = this.world.timeline;
    this.tally.begun.add(nowUs);
    this.tally.open++;
    return new Joined(this, origin, client, (this.settings.id << 20) + this.#serial++, nowUs);
  }

  send(call: Call, attempt: Attempt | GuardedAttempt): Job {
    const { world, tally } = this;
    const { nowUs } = world.timeline;
    call.attempts++;
    tally.attempts.add(nowUs);
    world.trace.note(nowUs, call.serial, SENT);
    const job = new Job(call, attempt);
    this.service.send(job);
    return job;
  }

  /**
   * Counts the end of a call. A call that is answered by a fallback counts as failed: the work was not done.
   */
  over(call: Call, ok: boolean, stop: StopReason | undefined, isFallback = false): void {
    const { world, tally } = this;
    const { nowUs } = world.timeline;
    const { startedUs } = call;
    tally.open--;
    world.trace.note(nowUs, call.serial, ok ? DONE_WELL : GAVE_UP);
    if (isFallback) tally.fallbacks.add(nowUs);
    if (ok && !isFallback) {
      tally.succeeded.add(nowUs);
      tally.won.add(startedUs);
      tally.latency.add(nowUs, nowUs - startedUs);
    } else {
      tally.failed.add(nowUs);
      tally.lost.add(startedUs);
      if (!call.poison) tally.lostGood++;
      if (stop) tally.stops[stop] = (tally.stops[stop] ?? 0) + 1;
    }
    if (call.attempts === 0 && !ok) tally.refused.add(nowUs);
    call.origin.ended(call, ok);
  }
}

function optionsOf(settings: CallerSettings): RunOptions | undefined {
  const { service, priority, isOwner } = settings;
  const { targets } = service;
  const patienceMs = ownPatienceMs(settings);
  const special = priority !== undefined && priority !== 'default';
  if (patienceMs === undefined && !targets && !special && isOwner !== false) return undefined;
  return {
    ...(patienceMs !== undefined && { patience: patienceMs }),
    ...(targets && { targets }),
    ...(special && { priority }),
    ...(isOwner === false && { retryVeto: notOwner }),
  };
}

function notOwner(): StopReason {
  return 'not_owner';
}

/**
 * The time in ms that a call may take: the shorter one of the clients' limit and the policy's limit.
 * Undefined if the clients have no limit.
 */
function ownPatienceMs({ patienceMs, policy }: CallerSettings): number | undefined {
  return patienceMs === undefined ? undefined : Math.min(patienceMs, policy.plan.patienceMs);
}

/** The timeout of a call in ms. It is at most the time that is left for the incoming call. */
function patienceOf({ caller, origin }: Call, now: number): number | undefined {
  const { knowsPatience, policy } = caller.settings;
  const patienceMs = ownPatienceMs(caller.settings);
  if (!knowsPatience || origin.expiresAt === undefined) return patienceMs;
  const left = Math.max(1, origin.expiresAt - now);
  return left < (patienceMs ?? policy.plan.patienceMs) ? left : patienceMs;
}

export interface Call {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly client: number;
  readonly serial: number;
  readonly startedUs: number;
  readonly poison: boolean;
  isOver: boolean;
  attempts: number;
  /** How often servers have finished the work of this call. More than once means duplicate work. */
  timesDone: number;
  begin(): void;
  answered(job: Job): void;
  leave(): void;
}

export class Joined implements Call {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly client: number;
  readonly serial: number;
  readonly startedUs: number;
  readonly poison = false;
  readonly attempts = 0;
  readonly timesDone = 0;
  isOver = false;

  constructor(caller: Caller, origin: Origin, client: number, serial: number, startedUs: number) {
    this.caller = caller;
    this.origin = origin;
    this.client = client;
    this.serial = serial;
    this.startedUs = startedUs;
  }

  begin(): void {}
  answered(): void {}
  leave(): void {}

  end(ok: boolean): void {
    this.isOver = true;
    this.caller.over(this, ok, undefined);
  }
}

class Leaving extends Alarm {
  readonly call: Call;

  constructor(call: Call) {
    super();
    this.call = call;
  }

  ring(): void {
    this.call.leave();
  }
}

const left = 'the customer has left';

/**
 * An abort handle that does nothing. It is used when the service ignores cancellation, because a real
 * AbortController costs ten times the rest of an attempt.
 */
const nothingToAbort = { signal: undefined, abort() {} } as unknown as AbortHandle;

/**
 * Runs a call without promises. It drives the state machine of the policy, as `policy.run` does internally.
 */
class DirectCall extends Alarm implements Call, Driver {
  declare readonly caller: Caller;
  declare readonly origin: Origin;
  declare readonly client: number;
  declare readonly serial: number;
  declare readonly startedUs: number;
  declare readonly poison: boolean;
  declare isOver: boolean;
  declare attempts: number;
  declare timesDone: number;
  /** Undefined while the first attempt runs without the state machine. */
  declare work: Work | undefined;
  declare leaving: Leaving | undefined;

  constructor(
    caller: Caller,
    origin: Origin,
    client: number,
    serial: number,
    startedUs: number,
    poison: boolean,
  ) {
    super();
    this.caller = caller;
    this.origin = origin;
    this.client = client;
    this.serial = serial;
    this.startedUs = startedUs;
    this.poison = poison;
    this.isOver = false;
    this.attempts = 0;
    this.timesDone = 0;
    this.work = undefined;
    this.leaving = undefined;
  }

  begin(): void {
    const { caller } = this;
    const { policy, leavesAfterMs } = caller.settings;
    const { timeline } = caller.world;
    const { plan } = policy;
    const now = timeline.now();
    if (caller.canSkipMachine) {
      this.send(startPlainAttempt(plan, now + plan.patienceMs));
      return;
    }
    const patienceMs = patienceOf(this, now);
    this.work = plan.work(caller.options, now, now + (patienceMs ?? plan.patienceMs));
    this.work.driver = this;
    if (leavesAfterMs !== undefined) {
      this.leaving = new Leaving(this);
      timeline.set(this.leaving, now + leavesAfterMs);
    }
    this.perform(this.work.begin(now));
  }

  send(attempt: Attempt): void {
    const { caller } = this;
    if (!caller.service.settings.cancels) attempt.abortThrough(nothingToAbort);
    caller.send(this, attempt);
  }

  perform(step: Step): void {
    const { caller } = this;
    const work = this.work!;
    const { timeline } = caller.world;
    if (step === SEND) {
      this.send(work.current!);
      if (work.stop) return;
    }
    if (step < DONE) {
      schedule(work, this);
      return;
    }
    timeline.clear(this);
    if (this.leaving) timeline.clear(this.leaving);
    this.over(step === DONE);
  }

  answered({ attempt, ok, given, world }: Job): void {
    world.trace.note(world.timeline.nowUs, this.serial, ok ? ANSWERED : FAILED);
    if (!this.work && ok) {
      attempt.plan.countSuccess(given);
      this.over(true);
      return;
    }
    this.work ??= machineFor(attempt as Attempt, this.startedUs / 1000);
    const outcome = ok ? { ok, value: given } : { ok, error: given };
    const step = stepAfter(this.work, this, attempt as Attempt, outcome);
    if (step !== undefined) this.perform(step);
  }

  over(ok: boolean): void {
    this.isOver = true;
    this.caller.over(this, ok, this.work?.stop);
  }

  ring(now: number): void {
    this.perform(stepAt(this.work!, now));
  }

  leave(): void {
    if (!this.isOver) this.perform(this.work!.cancel(this.caller.world.timeline.now(), left));
  }
}

/** Runs a call with `policy.run` and promises, as real programs do. */
class PromisedCall implements Call {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly client: number;
  readonly serial: number;
  readonly startedUs: number;
  readonly poison: boolean;
  isOver = false;
  attempts = 0;
  timesDone = 0;
  #leaving: Leaving | undefined;
  #controller: AbortController | undefined;

  constructor(
    caller: Caller,
    origin: Origin,
    client: number,
    serial: number,
    startedUs: number,
    poison: boolean,
  ) {
    this.caller = caller;
    this.origin = origin;
    this.client = client;
    this.serial = serial;
    this.startedUs = startedUs;
    this.poison = poison;
  }

  begin(): void {
    const { caller } = this;
    const { policy, leavesAfterMs } = caller.settings;
    const { timeline } = caller.world;
    let { options } = caller;
    const patience = patienceOf(this, timeline.now());
    if (patience !== undefined && patience !== options?.patience) options = { ...options, patience };
    if (leavesAfterMs !== undefined) {
      this.#controller = new AbortController();
      options = { ...options, signal: this.#controller.signal };
      this.#leaving = new Leaving(this);
      timeline.set(this.#leaving, timeline.now() + leavesAfterMs);
    }
    const operation = (attempt: unknown) => {
      const job = caller.send(this, attempt as Attempt);
      return new Promise((resolve, reject) => {
        job.promise = { resolve, reject };
        // The service may have rejected the job before this promise was created.
        if (job.isDelivered) this.answered(job);
      });
    };
    if ('fallback' in policy.spec) {
      // Only `policy.try` says whether a result is from the fallback.
      policy
        .try(operation, options)
        .then(({ ok, story, ...ending }) =>
          this.#over(ok, story.stop, 'from' in ending && ending.from === 'fallback'),
        );
      return;
    }
    (options ? policy.run(operation, options) : policy.run(operation)).then(
      () => this.#over(true, undefined),
      (error: unknown) => this.#over(false, storyOf(error)?.stop),
    );
  }

  answered(job: Job): void {
    const { world, ok, given, promise } = job;
    if (!promise) return;
    world.trace.note(world.timeline.nowUs, this.serial, ok ? ANSWERED : FAILED);
    if (ok) promise.resolve(given);
    else promise.reject(given);
  }

  leave(): void {
    // Each call needs its own error object, because `storyOf` finds the record of a run by its error.
    this.#controller?.abort(new Error(left));
  }

  #over(ok: boolean, stop: StopReason | undefined, isFallback = false): void {
    this.isOver = true;
    if (this.#leaving) this.caller.world.timeline.clear(this.#leaving);
    this.caller.over(this, ok, stop, isFallback);
  }
}
