import type { Broker, Leased, LeaseRequest, Ledger, Ordering } from '@holdfast/contracts';
import { type Clock, type Policy, withoutAmbient } from 'holdfast';
import { BatchSize } from './batch-size.ts';
import { Bell } from './bell.ts';
import type { Blame } from './blame.ts';
import type { Brake } from './dependency-gate.ts';
import type { ConsumerStatus } from './event-notices.ts';
import type { ExclusiveRun, Participant } from './exclusive-run.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Settler } from './settler.ts';
import { type Batch, Task, type TaskSettings } from './task.ts';
import type { TopicControlState } from './topic-control-state.ts';
import type { WorkerPool } from './worker-pool.ts';

export interface FeedSettings<T, Tx> extends TaskSettings {
  readonly name: string;
  readonly topic: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly broker: Broker<Tx>;
  readonly crew: WorkerPool<T, Tx>;
  readonly settler: Settler<Tx>;
  readonly heartbeat: Heartbeat;
  readonly brake: Brake;
  readonly blame: Blame;
  readonly orders: TopicControlState;
  readonly exclusiveRun: ExclusiveRun;
  /** Asks the store again, for as long as a lease lasts. */
  readonly store: Policy;
  /** Asked before the handler is, where every event is handled once. */
  readonly ledger: Ledger<Tx> | undefined;
  readonly batchMax: number;
  readonly bytesMax: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** The engine tells when something may be due; otherwise it has to be looked at more often. */
  readonly hasDoorbell: boolean;
  readonly retriesShare: number;
  concurrency(): number;
  /** Settlements that the store has answered so far. */
  finished(): number;
  onStatus(status: ConsumerStatus): void;
  onLeased(leased: Leased): void;
  onFailure(what: string, delayMs: number): void;
}

type Wanted = Pick<LeaseRequest, 'limit' | 'bytesMax' | 'suspects'>;

/** Where no doorbell rings: how soon to look again after something was found; twice as long each time after nothing was. */
const idleMinMs = 5;

/** One in so many given back unbegun is too many. */
const inVainPart = 8;
const runShareMin = 1 / 128;

/** How long suspects are run one after the other before the rest has its turn. */
const suspectsTurnMs = 1000;

/**
 * Takes events in hand, as many as suit. Everything is driven by `look`, which may be called at any time and for any
 * reason: it sees what is in hand, and does what can be done.
 */
export class Fetcher<T, Tx> implements Participant {
  readonly #settings: FeedSettings<T, Tx>;
  readonly #size: BatchSize;
  readonly #wake: Bell;
  #isLeaving = false;
  #ordering: Ordering = 'none';
  #silence: (() => void) | undefined;
  /** There may be something to lease. */
  #mayHaveWork = true;
  #leasing: Promise<void> | undefined;
  /** Lanes of the latest lease. */
  #lanes = 0;
  /** What is asked for of the longest run, and what it depends on: events taken, and given back unbegun. */
  #runShare = 1;
  #taken = 0;
  #returnedBefore = 0;
  /** Since when, and since how many, it has had work without a break. */
  #measured: { readonly at: number; readonly finished: number } | undefined;
  #idleMs = idleMinMs;
  /** The latest lease brought a suspect. */
  #hasSuspect = false;
  #waitingSince: number | undefined;
  #aloneSince: number | undefined;
  /** exclusiveRun was waited for in vain: until then suspects are left to others. */
  #soloNotBefore = -Infinity;
  suspects = 0;
  nextDueInMs: number | undefined;

  constructor(settings: FeedSettings<T, Tx>) {
    this.#settings = settings;
    this.#size = new BatchSize(settings.batchMax);
    this.#wake = new Bell(settings.clock, () => {
      this.ring();
      if (!this.#leasing && !settings.crew.isResting) void this.#readOrders();
    });
  }

  get isIdle(): boolean {
    const { crew, settler } = this.#settings;
    return !this.#leasing && crew.isGone && settler.unsettled === 0;
  }

  begin(ordering: Ordering): void {
    const { broker, topic, exclusiveRun } = this.#settings;
    this.#ordering = ordering;
    exclusiveRun.enter(this);
    // Nobody's patience but that of the events counts here: a handler may start a consumer, or ring by what it publishes.
    this.#silence = broker.doorbell(topic, () => withoutAmbient(() => this.ring()));
    withoutAmbient(() => this.goOn());
  }

  /** Takes nothing more; what a lease still brings is given back. */
  async end(): Promise<void> {
    this.#silence?.();
    this.#wake.clear();
    this.#isLeaving = true;
    await this.#leasing;
  }

  async #readOrders(): Promise<void> {
    const { orders, crew } = this.#settings;
    if (await this.#ask('controls', () => orders.read())) crew.hire();
  }

  /** Something may be due. It may be rung for nothing. */
  ring(): void {
    this.#mayHaveWork = true;
    this.goOn();
  }

  goOn(): void {
    const { clock, exclusiveRun } = this.#settings;
    if (this.#leasing || this.#isLeaving || exclusiveRun.isWantedBeside(this)) return;
    const isSolo = this.suspects > 0;
    if (!isSolo && !this.#mayHaveWork) return;
    const now = clock.now();
    if (isSolo && now >= this.#soloNotBefore) {
      if (!this.#isBraked(now)) this.#goOnAlone(now);
      else {
        // Other consumers of the process must not wait for the end of an outage, nor must other events of this one.
        this.#leaveSuspects();
        this.goOn();
      }
      return;
    }
    if (isSolo) this.#wake.within(this.#soloNotBefore - now);
    if (this.#mayHaveWork) {
      const limit = this.#room(now);
      const bytesMax = this.#settings.bytesMax - this.#settings.heartbeat.bytesInHand;
      // What is in hand ends, and that rings.
      if (limit > 0 && bytesMax > 0) this.#lease({ limit, bytesMax }, now);
    }
  }

  /** A breaker that it depends on admits nothing: it looks again when that may have changed. */
  #isBraked(now: number): boolean {
    const { brake, pollMs, onStatus } = this.#settings;
    if (brake.room(now) > 0) return false;
    onStatus('dependency_down');
    this.#wake.within(Math.min(pollMs, Math.max(1, brake.reopensAt(now) - now)));
    return true;
  }

  /** How many more to take in hand now. */
  #room(now: number): number {
    const { brake, blame, crew, settler, batchMax, pollMs, onStatus } = this.#settings;
    if (this.#isBraked(now)) return 0;
    onStatus('running');
    const concurrency = this.#settings.concurrency();
    const target = this.#size.target(concurrency);
    const isProbing = brake.isProbing(now);
    const room = Math.min(target, brake.room(now)) - crew.running - crew.queued;
    const isIdle = crew.queued === 0 && crew.running < concurrency;
    // Asking for one at a time, as each is begun, would cost a write each. Probes are chosen together: one round at a time.
    const isBusy = isProbing ? !crew.isResting : !isIdle && room * 2 < target;
    if (isBusy || settler.unsettled >= 2 * batchMax) {
      // With full hands nothing is leased, and what operators impose would not be seen.
      if (!this.#wake.isSet) this.#wake.within(pollMs);
      return 0;
    }
    // So that other events can be the probes than those that have failed, more are taken; what is not chosen goes back at once.
    return isProbing && room > 0 ? Math.max(room, Math.min(batchMax, room + blame.remembered)) : room;
  }

  /** Suspects: one at a time, with nothing else in the hands of this process. */
  #goOnAlone(now: number): void {
    const { exclusiveRun, onStatus } = this.#settings;
    // However long it takes: what settles it rings.
    if (this.#hasSuspect && !this.isIdle) return;
    onStatus('exclusive');
    if (!exclusiveRun.tryAcquire(this)) {
      this.#awaitSolitude(now);
      return;
    }
    this.#waitingSince = undefined;
    this.#aloneSince ??= now;
    if (now - this.#aloneSince > suspectsTurnMs) this.#leaveSuspects();
    else this.#lease({ limit: 1, suspects: true }, now);
  }

  #awaitSolitude(now: number): void {
    const { settler, leaseMs } = this.#settings;
    this.#waitingSince ??= now;
    const leftMs = this.#waitingSince + leaseMs - now;
    if (leftMs >= 0) {
      this.#wake.within(leftMs + 1);
      void settler.flush();
      return;
    }
    // Somebody's handler takes long. The rest does not wait for ever.
    this.#soloNotBefore = now + leaseMs;
    this.#leaveSuspects();
  }

  /** The rest has its turn; the next ordinary lease says whether there are more. */
  #leaveSuspects(): void {
    this.suspects = 0;
    this.#waitingSince = undefined;
    this.#aloneSince = undefined;
    this.#mayHaveWork = true;
    this.#settings.onStatus('running');
    this.#settings.exclusiveRun.giveBack(this);
  }

  #lease(request: Wanted, now: number): void {
    const { crew, exclusiveRun } = this.#settings;
    this.#mayHaveWork = false;
    this.#measure(now);
    this.#leasing = this.#leaseOnce(request, now).finally(() => {
      this.#leasing = undefined;
      crew.hire();
      this.goOn();
      if (this.isIdle) exclusiveRun.release();
    });
  }

  async #leaseOnce(request: Wanted, sentAt: number): Promise<void> {
    const { broker, brake, topic, owner, leaseMs, retriesShare, pollMs, onLeased } = this.#settings;
    const { limit } = request;
    const runs = this.#ordering === 'key' && { runMax: brake.isProbing(sentAt) ? 1 : this.#runMax(limit) };
    const leased = await this.#ask('lease', () =>
      broker.lease(topic, { owner, leaseMs, retriesShare, ...request, ...runs }),
    );
    if (!leased) return this.#wake.within(pollMs);
    onLeased(leased);
    await this.#receive(leased, sentAt);

    const { deliveries, suspects, nextDueInMs } = leased;
    // While one is in hand there is no other company for it.
    this.#hasSuspect = request.suspects === true && deliveries.length > 0;
    this.suspects = this.#hasSuspect ? Math.max(suspects, 1) : suspects;
    this.nextDueInMs = nextDueInMs;
    if (request.suspects && deliveries.length === 0) this.#leaveSuspects();
    else if (deliveries.length === limit) this.#mayHaveWork = true;
    else this.#wake.within(Math.min(this.#patienceMs(deliveries.length > 0), nextDueInMs ?? Infinity));
    if (deliveries.length === 0) this.#measured = undefined;
  }

  /** How long to wait before looking again: where no doorbell rings, less while there has been something lately. */
  #patienceMs(foundSome: boolean): number {
    const { pollMs, hasDoorbell } = this.#settings;
    if (hasDoorbell) return pollMs;
    this.#idleMs = foundSome ? idleMinMs : Math.min(pollMs, this.#idleMs * 2);
    return Math.min(pollMs, this.#idleMs);
  }

  /**
   * A lease may bring a run of one key: as long as no worker is idle for the sake of another, and shorter where heads fail and
   * what is behind them goes back.
   */
  #runMax(limit: number): number {
    const { crew } = this.#settings;
    const concurrency = this.#settings.concurrency();
    const isInVain = (crew.returned - this.#returnedBefore) * inVainPart > this.#taken;
    this.#runShare = isInVain ? Math.max(this.#runShare / 4, runShareMin) : Math.min(1, this.#runShare * 2);
    this.#returnedBefore = crew.returned;
    this.#taken = 0;
    const longest = this.#lanes < concurrency ? limit : Math.ceil(limit / concurrency);
    return Math.max(1, Math.ceil(longest * this.#runShare));
  }

  async #receive({ deliveries, controlsVersion }: Leased, sentAt: number): Promise<void> {
    const { crew, settler, heartbeat, leaseMs } = this.#settings;
    const tasks: Task<T>[] = [];
    const batch: Batch = { tasks, leaseEndsAt: sentAt + leaseMs, open: deliveries.length, bytes: 0 };
    for (const delivery of deliveries) {
      tasks.push(new Task<T>(delivery, this.#settings, batch, sentAt));
      batch.bytes += delivery.payload.length;
    }
    if (tasks.length > 0) heartbeat.watch(batch);
    const isReady = await this.#prepare(tasks, controlsVersion);
    const chosen = isReady && !this.#isLeaving ? this.#chosen(tasks) : [];
    this.#taken += chosen.length;
    this.#lanes = crew.enqueue(chosen, this.#ordering);
    if (chosen.length === tasks.length) return;
    const kept = new Set(chosen);
    for (const task of tasks)
      if (!kept.has(task)) settler.add(task, { lease: task.delivery.lease, kind: 'return' });
  }

  /** All of them; while a breaker is not closed, as many as it has probes, and of each key the first only. */
  #chosen(tasks: readonly Task<T>[]): readonly Task<T>[] {
    const { brake, blame, crew, clock } = this.#settings;
    const now = clock.now();
    if (!brake.isProbing(now)) return tasks;
    const hasOrder = this.#ordering === 'key';
    const heads = tasks.filter(
      ({ key }, index) => !hasOrder || key === undefined || key !== tasks[index - 1]?.key,
    );
    // Nobody knows whether those who run have taken their probe yet: they count as if they had not.
    return blame.probes(heads, Math.max(0, brake.room(now) - crew.running - crew.queued));
  }

  /** Reads what has to be known before any of them is handled. False: the store does not answer. */
  async #prepare(tasks: readonly Task<T>[], controlsVersion: number): Promise<boolean> {
    const { orders, ledger, name } = this.#settings;
    if (!orders.isCurrent(controlsVersion)) {
      const read = await this.#ask('controls', () => orders.read());
      if (!read) return false;
    }
    if (!ledger || tasks.length === 0) return true;
    const marks = tasks.map(({ id }) => ({ handler: name, eventId: id }));
    const marked = await this.#ask('ledger', () => ledger.isMarked(marks));
    marked?.forEach((isMarked, index) => {
      tasks[index]!.isRepeated = isMarked;
    });
    return marked !== undefined;
  }

  /** The answer of the store, asked as often as it takes; `undefined` when it has none in good time. */
  async #ask<R extends object>(what: string, question: () => Promise<R>): Promise<R | undefined> {
    const { store, onFailure } = this.#settings;
    const ending = await store.try(question, {
      // Not cut off: a lease that is on its way would be held by nobody.
      retryVeto: () => (this.#isLeaving ? 'cancelled' : undefined),
      onWait: ({ delayMs }) => onFailure(what, delayMs),
    });
    return ending.ok ? (ending.value as R) : undefined;
  }

  #measure(now: number): void {
    const finished = this.#settings.finished();
    const { at = now, finished: before = finished } = this.#measured ?? {};
    if (now - at < measuredMinMs && this.#measured) return;
    this.#size.measured(finished - before, now - at);
    this.#measured = { at: now, finished };
  }
}

/** What happens in less says little about how fast it is. */
const measuredMinMs = 0.05;
