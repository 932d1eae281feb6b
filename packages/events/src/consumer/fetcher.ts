import type { Broker, Leased, LeaseRequest, Ledger, Ordering } from '@holdfast/contracts';
import { type Clock, type Policy, withoutAmbient } from 'holdfast';
import { BatchSize } from './batch-size.ts';
import { Bell } from './bell.ts';
import type { Blame } from './blame.ts';
import type { DependencyGate } from './dependency-gate.ts';
import type { ConsumerStatus } from './event-notices.ts';
import type { ExclusiveRun, Participant } from './exclusive-run.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Settler } from './settler.ts';
import { type Batch, Task, type TaskSettings } from './task.ts';
import type { TopicControlState } from './topic-control-state.ts';
import type { WorkerPool } from './worker-pool.ts';

export interface FetcherSettings<T, Tx> extends TaskSettings {
  readonly name: string;
  readonly topic: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly broker: Broker<Tx>;
  readonly pool: WorkerPool<T, Tx>;
  readonly settler: Settler<Tx>;
  readonly heartbeat: Heartbeat;
  readonly gate: DependencyGate;
  readonly blame: Blame;
  readonly controls: TopicControlState;
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
const returnedShare = 8;
const runShareMin = 1 / 128;

/** How long suspects are run one after the other before the rest has its turn. */
const suspectsMaxMs = 1000;

/**
 * Takes events in hand, as many as suit. Everything is driven by `look`, which may be called at any time and for any
 * reason: it sees what is in hand, and does what can be done.
 */
export class Fetcher<T, Tx> implements Participant {
  readonly #settings: FetcherSettings<T, Tx>;
  readonly #size: BatchSize;
  readonly #wake: Bell;
  #isEnding = false;
  #ordering: Ordering = 'none';
  #offDoorbell: (() => void) | undefined;
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
  #exclusiveSince: number | undefined;
  /** exclusiveRun was waited for in vain: until then suspects are left to others. */
  #suspectsNotBefore = -Infinity;
  suspects = 0;
  nextDueInMs: number | undefined;

  constructor(settings: FetcherSettings<T, Tx>) {
    this.#settings = settings;
    this.#size = new BatchSize(settings.batchMax);
    this.#wake = new Bell(settings.clock, () => {
      this.ring();
      if (!this.#leasing && !settings.pool.isOutOfWork) void this.#readControls();
    });
  }

  get isIdle(): boolean {
    const { pool, settler } = this.#settings;
    return !this.#leasing && pool.isIdle && settler.unsettled === 0;
  }

  begin(ordering: Ordering): void {
    const { broker, topic, exclusiveRun } = this.#settings;
    this.#ordering = ordering;
    exclusiveRun.join(this);
    // Nobody's patience but that of the events counts here: a handler may start a consumer, or ring by what it publishes.
    this.#offDoorbell = broker.doorbell(topic, () => withoutAmbient(() => this.ring()));
    withoutAmbient(() => this.poll());
  }

  /** Takes nothing more; what a lease still brings is given back. */
  async end(): Promise<void> {
    this.#offDoorbell?.();
    this.#wake.clear();
    this.#isEnding = true;
    await this.#leasing;
  }

  async #readControls(): Promise<void> {
    const { controls, pool } = this.#settings;
    if (await this.#askStore('controls', () => controls.read())) pool.startWorkers();
  }

  /** Something may be due. It may be rung for nothing. */
  ring(): void {
    this.#mayHaveWork = true;
    this.poll();
  }

  poll(): void {
    const { clock, exclusiveRun } = this.#settings;
    if (this.#leasing || this.#isEnding || exclusiveRun.isHeldByOther(this)) return;
    const hasSuspects = this.suspects > 0;
    if (!hasSuspects && !this.#mayHaveWork) return;
    const now = clock.now();
    if (hasSuspects && now >= this.#suspectsNotBefore) {
      if (!this.#isGateShut(now)) this.#pollSuspects(now);
      else {
        // Other consumers of the process must not wait for the end of an outage, nor must other events of this one.
        this.#postponeSuspects();
        this.poll();
      }
      return;
    }
    if (hasSuspects) this.#wake.within(this.#suspectsNotBefore - now);
    if (this.#mayHaveWork) {
      const limit = this.#room(now);
      const bytesMax = this.#settings.bytesMax - this.#settings.heartbeat.bytesInHand;
      // What is in hand ends, and that rings.
      if (limit > 0 && bytesMax > 0) this.#lease({ limit, bytesMax }, now);
    }
  }

  /** A breaker that it depends on admits nothing: it looks again when that may have changed. */
  #isGateShut(now: number): boolean {
    const { gate, pollMs, onStatus } = this.#settings;
    if (gate.room(now) > 0) return false;
    onStatus('dependency_down');
    this.#wake.within(Math.min(pollMs, Math.max(1, gate.reopensAt(now) - now)));
    return true;
  }

  /** How many more to take in hand now. */
  #room(now: number): number {
    const { gate, blame, pool, settler, batchMax, pollMs, onStatus } = this.#settings;
    if (this.#isGateShut(now)) return 0;
    onStatus('running');
    const concurrency = this.#settings.concurrency();
    const target = this.#size.target(concurrency);
    const isProbing = gate.isProbing(now);
    const room = Math.min(target, gate.room(now)) - pool.running - pool.queued;
    const isIdle = pool.queued === 0 && pool.running < concurrency;
    // Asking for one at a time, as each is begun, would cost a write each. Probes are chosen together: one round at a time.
    const isBusy = isProbing ? !pool.isOutOfWork : !isIdle && room * 2 < target;
    if (isBusy || settler.unsettled >= 2 * batchMax) {
      // With full hands nothing is leased, and what operators impose would not be seen.
      if (!this.#wake.isSet) this.#wake.within(pollMs);
      return 0;
    }
    // So that other events can be the probes than those that have failed, more are taken; what is not chosen goes back at once.
    return isProbing && room > 0 ? Math.max(room, Math.min(batchMax, room + blame.remembered)) : room;
  }

  /** Suspects: one at a time, with nothing else in the hands of this process. */
  #pollSuspects(now: number): void {
    const { exclusiveRun, onStatus } = this.#settings;
    // However long it takes: what settles it rings.
    if (this.#hasSuspect && !this.isIdle) return;
    onStatus('exclusive');
    if (!exclusiveRun.tryAcquire(this)) {
      this.#awaitExclusiveRun(now);
      return;
    }
    this.#waitingSince = undefined;
    this.#exclusiveSince ??= now;
    if (now - this.#exclusiveSince > suspectsMaxMs) this.#postponeSuspects();
    else this.#lease({ limit: 1, suspects: true }, now);
  }

  #awaitExclusiveRun(now: number): void {
    const { settler, leaseMs } = this.#settings;
    this.#waitingSince ??= now;
    const leftMs = this.#waitingSince + leaseMs - now;
    if (leftMs >= 0) {
      this.#wake.within(leftMs + 1);
      void settler.flush();
      return;
    }
    // Somebody's handler takes long. The rest does not wait for ever.
    this.#suspectsNotBefore = now + leaseMs;
    this.#postponeSuspects();
  }

  /** The rest has its turn; the next ordinary lease says whether there are more. */
  #postponeSuspects(): void {
    this.suspects = 0;
    this.#waitingSince = undefined;
    this.#exclusiveSince = undefined;
    this.#mayHaveWork = true;
    this.#settings.onStatus('running');
    this.#settings.exclusiveRun.release(this);
  }

  #lease(request: Wanted, now: number): void {
    const { pool, exclusiveRun } = this.#settings;
    this.#mayHaveWork = false;
    this.#measure(now);
    this.#leasing = this.#leaseOnce(request, now).finally(() => {
      this.#leasing = undefined;
      pool.startWorkers();
      this.poll();
      if (this.isIdle) exclusiveRun.notifyOwner();
    });
  }

  async #leaseOnce(request: Wanted, sentAt: number): Promise<void> {
    const { broker, gate, topic, owner, leaseMs, retriesShare, pollMs, onLeased } = this.#settings;
    const { limit } = request;
    const runs = this.#ordering === 'key' && { runMax: gate.isProbing(sentAt) ? 1 : this.#runMax(limit) };
    const leased = await this.#askStore('lease', () =>
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
    if (request.suspects && deliveries.length === 0) this.#postponeSuspects();
    else if (deliveries.length === limit) this.#mayHaveWork = true;
    else this.#wake.within(Math.min(this.#pollDelayMs(deliveries.length > 0), nextDueInMs ?? Infinity));
    if (deliveries.length === 0) this.#measured = undefined;
  }

  /** How long to wait before looking again: where no doorbell rings, less while there has been something lately. */
  #pollDelayMs(foundSome: boolean): number {
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
    const { pool } = this.#settings;
    const concurrency = this.#settings.concurrency();
    const returnsTooMany = (pool.returned - this.#returnedBefore) * returnedShare > this.#taken;
    this.#runShare = returnsTooMany
      ? Math.max(this.#runShare / 4, runShareMin)
      : Math.min(1, this.#runShare * 2);
    this.#returnedBefore = pool.returned;
    this.#taken = 0;
    const longest = this.#lanes < concurrency ? limit : Math.ceil(limit / concurrency);
    return Math.max(1, Math.ceil(longest * this.#runShare));
  }

  async #receive({ deliveries, controlsVersion }: Leased, sentAt: number): Promise<void> {
    const { pool, settler, heartbeat, leaseMs } = this.#settings;
    const tasks: Task<T>[] = [];
    const batch: Batch = { tasks, leaseEndsAt: sentAt + leaseMs, open: deliveries.length, bytes: 0 };
    for (const delivery of deliveries) {
      tasks.push(new Task<T>(delivery, this.#settings, batch, sentAt));
      batch.bytes += delivery.payload.length;
    }
    if (tasks.length > 0) heartbeat.watch(batch);
    const isReady = await this.#prepare(tasks, controlsVersion);
    const chosen = isReady && !this.#isEnding ? this.#chooseProbes(tasks) : [];
    this.#taken += chosen.length;
    this.#lanes = pool.enqueue(chosen, this.#ordering);
    if (chosen.length === tasks.length) return;
    const kept = new Set(chosen);
    for (const task of tasks)
      if (!kept.has(task)) settler.add(task, { lease: task.delivery.lease, kind: 'return' });
  }

  /** All of them; while a breaker is not closed, as many as it has probes, and of each key the first only. */
  #chooseProbes(tasks: readonly Task<T>[]): readonly Task<T>[] {
    const { gate, blame, pool, clock } = this.#settings;
    const now = clock.now();
    if (!gate.isProbing(now)) return tasks;
    const hasOrder = this.#ordering === 'key';
    const heads = tasks.filter(
      ({ key }, index) => !hasOrder || key === undefined || key !== tasks[index - 1]?.key,
    );
    // Nobody knows whether those who run have taken their probe yet: they count as if they had not.
    return blame.probes(heads, Math.max(0, gate.room(now) - pool.running - pool.queued));
  }

  /** Reads what has to be known before any of them is handled. False: the store does not answer. */
  async #prepare(tasks: readonly Task<T>[], controlsVersion: number): Promise<boolean> {
    const { controls, ledger, name } = this.#settings;
    if (!controls.isCurrent(controlsVersion)) {
      const read = await this.#askStore('controls', () => controls.read());
      if (!read) return false;
    }
    if (!ledger || tasks.length === 0) return true;
    const marks = tasks.map(({ id }) => ({ handler: name, eventId: id }));
    const marked = await this.#askStore('ledger', () => ledger.isMarked(marks));
    marked?.forEach((isMarked, index) => {
      tasks[index]!.isRepeated = isMarked;
    });
    return marked !== undefined;
  }

  /** The answer of the store, asked as often as it takes; `undefined` when it has none in good time. */
  async #askStore<R extends object>(what: string, question: () => Promise<R>): Promise<R | undefined> {
    const { store, onFailure } = this.#settings;
    const ending = await store.try(question, {
      // Not cut off: a lease that is on its way would be held by nobody.
      retryVeto: () => (this.#isEnding ? 'cancelled' : undefined),
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
