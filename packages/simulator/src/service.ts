import type { FaultSettings, ServiceSettings } from '@holdfast/config';
import type { Random } from 'holdfast';
import { AdaptiveLimit, Codel, Gcra } from 'holdfast/machines';
import type { Caller } from './caller.ts';
import { broken, connectionRefused, type Failure, overloaded, tooMany } from './failures.ts';
import type { Job } from './job.ts';
import { JobQueue } from './job-queue.ts';
import { Recording } from './recording.ts';
import { Row } from './row.ts';
import { none, type Sampler, sampler } from './sampling.ts';
import { ServiceTally } from './tally.ts';
import type { World } from './world.ts';

/** How a service handles a call: first its own work, then its calls to other services. */
export interface Route {
  readonly time: Sampler;
  readonly calls: Caller[];
}

export class Service {
  readonly name: string;
  readonly world: World;
  readonly settings: ServiceSettings;
  readonly tally: ServiceTally;
  readonly instances: readonly Instance[];
  /** The names of the instances, if the caller's policy selects one of them; otherwise undefined. */
  readonly targets: readonly string[] | undefined;
  readonly route: Route;
  readonly routes = new Map<string, Route>();
  readonly network: Sampler;
  readonly recording: Recording | undefined;
  readonly #row: Row | undefined;
  readonly faults = new Set<FaultSettings>();
  loss = 0;
  readonly #chance: Random;
  readonly #byName = new Map<string, Instance>();

  constructor(world: World, name: string, settings: ServiceSettings) {
    this.world = world;
    this.name = name;
    this.settings = settings;
    this.tally = new ServiceTally(settings.instances);
    this.instances = Array.from({ length: settings.instances }, (_, index) => new Instance(this, index));
    for (const instance of this.instances) this.#byName.set(instance.name, instance);
    const chosen = settings.instances > 1 && settings.balance === 'policy';
    this.targets = chosen ? this.instances.map((each) => each.name) : undefined;
    this.route = { time: sampler(settings.time, world.random('service', name)), calls: [] };
    for (const [key, { time }] of Object.entries(settings.routes)) {
      this.routes.set(key, { time: sampler(time, world.random('service', name, key)), calls: [] });
    }
    this.network = sampler(settings.network, world.random('network', name));
    this.recording = settings.recording && new Recording(settings.recording);
    this.#row = settings.conditionalWrite ? new Row(world, this.tally, this.network) : undefined;
    this.#chance = world.random('chance', name);
  }

  send(job: Job): void {
    const { tally, world } = this;
    job.instance = this.#instanceFor(job);
    tally.received.add(world.timeline.nowUs);
    tally.byInstance?.[job.instance.index]?.add(world.timeline.nowUs);
    if (this.settings.cancels) {
      job.attempt.signal.addEventListener('abort', () => job.instance.cancel(job), { once: true });
    }
    if (this.isLost()) return;
    if (this.#row) {
      this.#row.send(job);
      return;
    }
    const delayUs = this.network === none ? 0 : this.network();
    if (delayUs > 0) job.travel(delayUs);
    else job.instance.accept(job);
  }

  isLost(): boolean {
    return this.loss > 0 && this.#chance() < this.loss;
  }

  happens(share: number): boolean {
    return share > 0 && (share >= 1 || this.#chance() < share);
  }

  routeOf(job: Job): Route {
    const { route } = job.call.caller.settings;
    return route === undefined ? this.route : this.routes.get(route)!;
  }

  #instanceFor({ attempt }: Job): Instance {
    const { instances } = this;
    if (instances.length === 1) return instances[0]!;
    if (this.targets) return this.#byName.get(attempt.target as string)!;
    const draw = () => instances[Math.floor(this.#chance() * instances.length)]!;
    const one = draw();
    if (this.settings.balance === 'random') return one;
    const other = draw();
    return other.present < one.present ? other : one;
  }
}

export interface InjectedError {
  readonly share: number;
  make(): Failure;
}

export class Instance {
  readonly name: string;
  readonly index: number;
  readonly service: Service;
  busy = 0;
  present = 0;
  stalledUntilUs = 0;
  /** The total time of all stalls so far. The current stall counts in full, up to its future end. */
  stoodUs = 0;
  isRefusing = false;
  isHanging = false;
  errors: readonly InjectedError[] = [];
  extraUs = 0;
  capacity = 1;
  /** The current speed, with faults. */
  speed = 1;
  readonly #timeline: World['timeline'];
  readonly #queue = new JobQueue<Job>();
  readonly #codel: Codel | undefined;
  readonly #limit: AdaptiveLimit | undefined;
  readonly #gcra: Gcra | undefined;
  #windowEndsUs = 0;
  #inWindow = 0;
  /** The working time that rejections have cost. The next call takes longer by this time. */
  #debtUs = 0;
  #changedUs = 0;

  constructor(service: Service, index: number) {
    const { queue, limit, rateLimit } = service.settings;
    this.service = service;
    this.#timeline = service.world.timeline;
    this.index = index;
    this.name = `${service.name}-${index}`;
    this.#codel =
      queue?.order === 'codel'
        ? new Codel({ targetMs: queue.target, intervalMs: queue.interval })
        : undefined;
    this.#limit = limit && new AdaptiveLimit(limit);
    this.#gcra =
      rateLimit?.kind === 'gcra'
        ? new Gcra({ ratePerMs: rateLimit.calls / rateLimit.per, burst: rateLimit.calls })
        : undefined;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** This getter is not private, because private getters are slow in V8 (the JavaScript engine). */
  get nowUs(): number {
    return this.#timeline.nowUs;
  }

  get isStalled(): boolean {
    return this.nowUs < this.stalledUntilUs;
  }

  stall(untilUs: number): void {
    const fromUs = Math.max(this.nowUs, this.stalledUntilUs);
    if (untilUs <= fromUs) return;
    this.stoodUs += untilUs - fromUs;
    this.stalledUntilUs = untilUs;
  }

  accept(job: Job): void {
    const { service } = this;
    const { rateLimit } = service.settings;
    if (this.isHanging) return;
    if (this.isRefusing) this.#refuse(job, connectionRefused());
    else {
      for (const { share, make } of this.errors) {
        if (!service.happens(share)) continue;
        this.#refuse(job, make());
        return;
      }
      const waitMs = rateLimit ? this.#rateLimited() : 0;
      if (waitMs > 0) this.#refuse(job, tooMany(rateLimit?.tellsWhen ? waitMs : undefined));
      else if (this.#limit && this.#limit.inFlight >= this.#limit.limit) this.#refuse(job, this.#full());
      else this.#enter(job);
    }
  }

  #enter(job: Job): void {
    const { settings, tally } = this.service;
    if (this.busy < settings.workers && !this.isStalled) {
      this.#arrive(job);
      this.#observe();
      this.#start(job);
    } else if (this.queued < (settings.queue?.max ?? Infinity) || this.#makeRoom(job.rank)) {
      if (this.queued >= this.service.world.waitingMax) throw new RangeError(this.#endless());
      this.#queue.add(job);
      this.#arrive(job);
      if (this.queued > tally.queueMost) tally.queueMost = this.queued;
      this.#observe();
    } else this.#refuse(job, this.#full());
  }

  #endless(): string {
    const seconds = Math.round(this.nowUs / 1e6);
    return `${this.name} has ${this.queued.toLocaleString('en')} calls in its queue after ${seconds} s, and more coming: give the queue a max, or the run a shorter duration.`;
  }

  #makeRoom(rank: number): boolean {
    const displaced = this.#queue.lessImportant(rank);
    if (!displaced) return false;
    this.#queue.remove(displaced);
    this.#leave(displaced);
    this.#limit?.onCancel();
    this.#refuse(displaced, this.#full());
    return true;
  }

  cancel(job: Job): void {
    if (!job.ahead) return;
    this.#queue.remove(job);
    this.#leave(job);
    this.#limit?.onCancel();
  }

  /** Called when the service's own work for a call is done. It then calls other services, or answers. */
  served(job: Job): void {
    const stoodUs = this.stoodUs - job.stoodUs;
    if (stoodUs > 0) {
      job.stoodUs = this.stoodUs;
      job.serve(stoodUs);
      return;
    }
    const { service } = this;
    const { poison, caller } = job.call;
    this.#account(job);
    // A poison call (it fails at every attempt) fails only in the last service of its chain.
    const isLast = service.routeOf(job).calls.length === 0;
    if (job.fate) this.#finish(job, false, job.fate);
    else if (isLast && (poison || service.happens(caller.failing))) this.#finish(job, false, broken());
    else this.#callNext(job);
  }

  calledOthers(job: Job, ok: boolean): void {
    if (this.service.settings.together) {
      if (!ok) job.fate = broken();
      if (--job.callsOpen === 0) this.#finish(job, !job.fate, job.fate ?? true);
    } else if (ok) this.#callNext(job);
    else this.#finish(job, false, broken());
  }

  wake(): void {
    this.#startNext();
  }

  #callNext(job: Job): void {
    const { calls } = this.service.routeOf(job);
    const next = calls[job.callsMade];
    if (!next) {
      this.#finish(job, true, true);
      return;
    }
    const { holdsWorker, together } = this.service.settings;
    if (job.callsMade === 0 && !holdsWorker) this.#freeWorker();
    if (together) {
      job.callsMade = job.callsOpen = calls.length;
      for (const each of calls) each.ask(job, 0, job.call.poison);
      return;
    }
    job.callsMade++;
    next.ask(job, 0, job.call.poison);
  }

  #finish(job: Job, ok: boolean, given: unknown): void {
    const { service } = this;
    const { tally } = service;
    const nowUs = this.nowUs;
    const isFree = job.callsMade > 0 && !service.settings.holdsWorker;
    this.#leave(job);
    this.#limit?.onEnd(nowUs / 1000, (nowUs - job.arrivedUs) / 1000, false);
    tally.completed.add(nowUs);
    if (ok && job.call.timesDone++ > 0) tally.duplicates++;
    if (!isFree) this.#freeWorker();
    this.#answer(job, ok, given);
  }

  #freeWorker(): void {
    this.busy--;
    this.#startNext();
  }

  #account(job: Job): void {
    const { tally } = this.service;
    const tookUs = this.nowUs - job.startedUs;
    tally.workedUs += tookUs;
    if (!job.isOrphan) return;
    tally.zombies.add(this.nowUs);
    tally.wastedUs += tookUs;
  }

  #startNext(): void {
    const { queue, workers } = this.service.settings;
    while (this.busy < workers && this.queued > 0 && !this.isStalled) {
      const codel = this.#observe();
      if (codel?.overloaded) this.#dropLong(codel);
      const job = this.#queue.next(queue?.order === 'lifo' || codel?.overloaded === true);
      if (!job) return;
      this.#queue.remove(job);
      if (queue?.dropExpired && job.expiresAt <= this.nowUs / 1000) {
        this.#leave(job);
        this.#limit?.onCancel();
      } else this.#start(job);
    }
  }

  #start(job: Job): void {
    const { service } = this;
    const { settings, tally } = service;
    const nowUs = this.nowUs;
    const { poisonUs } = job.call.caller;
    let ownUs: number;
    if (service.recording) {
      const then = service.recording.at(nowUs / 1000);
      ownUs = then.took * 1000;
      job.fate = Recording.failure(then.gave);
    } else ownUs = job.call.poison && poisonUs !== undefined ? poisonUs : service.routeOf(job).time();
    const slowdownUs = settings.slowdown * 1000 * this.busy;
    const timeUs = (ownUs + slowdownUs) / this.speed + this.extraUs + this.#debtUs;
    this.#debtUs = 0;
    this.busy++;
    job.startedUs = nowUs;
    job.stoodUs = this.stoodUs;
    // If the number of workers is not limited, no call waits. Recording a wait of 0 for each call would
    // double the memory.
    if (settings.workers < Infinity) tally.waits.add(nowUs, nowUs - job.arrivedUs);
    job.serve(Math.round(timeUs));
  }

  #dropLong(codel: Codel): void {
    for (const oldest of this.#queue.oldest()) {
      for (let job = oldest; job && codel.drops((this.nowUs - job.arrivedUs) / 1000); ) {
        const behind: Job | undefined = job.behind === job ? undefined : (job.behind as Job);
        this.#queue.remove(job);
        this.#leave(job);
        this.#limit?.onCancel();
        this.#refuse(job, this.#full());
        job = behind?.call ? behind : undefined;
      }
    }
  }

  #observe(): Codel | undefined {
    const codel = this.#codel;
    if (!codel) return undefined;
    let longestUs = 0;
    for (const job of this.#queue.oldest())
      if (job) longestUs = Math.max(longestUs, this.nowUs - job.arrivedUs);
    codel.observe(this.nowUs / 1000, longestUs / 1000);
    return codel;
  }

  #rateLimited(): number {
    const { rateLimit } = this.service.settings;
    const nowUs = this.nowUs;
    if (this.#gcra) {
      const waitMs = this.#gcra.peek(nowUs / 1000);
      if (waitMs === 0) this.#gcra.reserve(nowUs / 1000, 0);
      return waitMs;
    }
    const perUs = rateLimit!.per * 1000;
    if (nowUs >= this.#windowEndsUs) {
      this.#windowEndsUs = (Math.floor(nowUs / perUs) + 1) * perUs;
      this.#inWindow = 0;
    }
    if (this.#inWindow >= rateLimit!.calls) return (this.#windowEndsUs - nowUs) / 1000;
    this.#inWindow++;
    return 0;
  }

  #refuse(job: Job, failure: object): void {
    const { settings, tally } = this.service;
    this.#debtUs += settings.refusalCost * 1000;
    tally.refused.add(this.nowUs);
    this.#answer(job, false, failure);
  }

  #answer(job: Job, ok: boolean, given: unknown): void {
    const { service } = this;
    if (service.isLost()) return;
    job.reply(ok, given, service.network === none ? 0 : service.network());
  }

  #full(): object {
    return overloaded(this.service.settings.retryAfter);
  }

  #arrive(job: Job): void {
    job.arrivedUs = this.nowUs;
    this.#limit?.onStart();
    this.#count(this.nowUs, 1);
  }

  #leave(job: Job): void {
    this.service.tally.stayedUs += this.nowUs - job.arrivedUs;
    this.#count(this.nowUs, -1);
  }

  #count(nowUs: number, change: number): void {
    this.service.tally.presentUs += this.present * (nowUs - this.#changedUs);
    this.#changedUs = nowUs;
    this.present += change;
  }
}
