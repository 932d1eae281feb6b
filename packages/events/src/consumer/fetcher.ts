import type { Broker, Leased, LeaseRequest, Ledger, Ordering } from '@holdfast/contracts';
import { type Clock, type Policy, Timer, withoutAmbient } from 'holdfast';
import { BatchSize } from './batch-size.ts';
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
  /** A policy that retries calls of the store for at most the duration of a lease. */
  readonly store: Policy;
  /** The ledger that knows which events were already handled. `undefined`: do not check. */
  readonly ledger: Ledger<Tx> | undefined;
  readonly batchMax: number;
  readonly bytesMax: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** True: the engine notifies the consumer when an event is due. False: the fetcher polls more often. */
  readonly hasDoorbell: boolean;
  readonly retriesShare: number;
  concurrency(): number;
  finished(): number;
  onStatus(status: ConsumerStatus): void;
  onLeased(leased: Leased): void;
  onFailure(what: string, delayMs: number): void;
}

type Wanted = Pick<LeaseRequest, 'limit' | 'bytesMax' | 'suspects'>;

/**
 * The shortest delay between two polls if the engine sends no notifications. The delay doubles after each
 * poll that finds no event.
 */
const idleMinMs = 5;

/**
 * If more than 1 of 8 leased events goes back to the store unhandled, `#runMax` reduces how many events of
 * one key are leased together.
 */
const returnedShare = 8;
const runShareMin = 1 / 128;

/**
 * Suspects (events that may crash the process) are handled while nothing else runs. After this time (ms),
 * other events are handled again.
 */
const suspectsMaxMs = 1000;

/** Leases events when workers are free. `poll` may be called at any time. */
export class Fetcher<T, Tx> implements Participant {
  readonly #settings: FetcherSettings<T, Tx>;
  readonly #size: BatchSize;
  readonly #wake: Timer;
  #isEnding = false;
  #ordering: Ordering = 'none';
  #offDoorbell: (() => void) | undefined;
  /**
   * False: the last lease call returned fewer events than requested, so the store has no more due events. A
   * notification of the store or a timer sets it to true again.
   */
  #mayHaveWork = true;
  #leasing: Promise<void> | undefined;
  /**
   * The length of the queue after the last lease call, in lanes. A lane is one event, or successive events of
   * one key.
   */
  #lanes = 0;
  /** Reduces how many events of one key are leased together: a factor from 0 to 1. */
  #runShare = 1;
  #taken = 0;
  #returnedBefore = 0;
  #measured: { readonly at: number; readonly finished: number } | undefined;
  #idleMs = idleMinMs;
  /**
   * True: the last lease call returned a suspect (an event that may crash the process), which must be handled
   * alone.
   */
  #hasSuspect = false;
  #waitingSince: number | undefined;
  #exclusiveSince: number | undefined;
  /**
   * No suspect (event that may crash the process) is leased before this time. The time is set when another
   * handler runs so long that a suspect cannot be handled alone.
   */
  #suspectsNotBefore = -Infinity;
  suspects = 0;
  nextDueInMs: number | undefined;

  constructor(settings: FetcherSettings<T, Tx>) {
    this.#settings = settings;
    this.#size = new BatchSize(settings.batchMax);
    this.#wake = new Timer(settings.clock, () => {
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
    // This code may run inside a handler that starts a consumer or publishes an event. `withoutAmbient`
    // prevents that the deadline of that handler applies to other events.
    this.#offDoorbell = broker.doorbell(topic, () => withoutAmbient(() => this.ring()));
    withoutAmbient(() => this.poll());
  }

  /** Leases no more events. If a lease call is in flight, its events go back to the store. */
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

  /** Call it when an event of the topic may be due. An unnecessary call does no harm. */
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
        // A dependency is down, so suspects (events that may crash the process) cannot be handled now. Handle
        // other events first.
        this.#postponeSuspects();
        this.poll();
      }
      return;
    }
    if (hasSuspects) this.#wakeWithin(this.#suspectsNotBefore - now);
    if (this.#mayHaveWork) {
      const limit = this.#room(now);
      const bytesMax = this.#settings.bytesMax - this.#settings.heartbeat.bytesInHand;
      // If no worker is free or too many bytes are leased, `poll` is called again after the next event.
      if (limit > 0 && bytesMax > 0) this.#lease({ limit, bytesMax }, now);
    }
  }

  /** True: all circuit breakers of a dependency are open. In this case, a timer is also set to poll again. */
  #isGateShut(now: number): boolean {
    const { gate, pollMs, onStatus } = this.#settings;
    if (gate.room(now) > 0) return false;
    onStatus('dependency_down');
    this.#wakeWithin(Math.min(pollMs, Math.max(1, gate.reopensAt(now) - now)));
    return true;
  }

  #room(now: number): number {
    const { gate, blame, pool, settler, batchMax, pollMs, onStatus } = this.#settings;
    if (this.#isGateShut(now)) return 0;
    onStatus('running');
    const concurrency = this.#settings.concurrency();
    const target = this.#size.target(concurrency);
    const isProbing = gate.isProbing(now);
    const room = Math.min(target, gate.room(now)) - pool.running - pool.queued;
    const isIdle = pool.queued === 0 && pool.running < concurrency;
    // Wait until at least half of a batch can be leased: single events would cost one write each. While a
    // dependency is tested, wait until all test events are finished.
    const isBusy = isProbing ? !pool.isOutOfWork : !isIdle && room * 2 < target;
    if (isBusy || settler.unsettled >= 2 * batchMax) {
      // The answer to a lease call says whether operators have changed a control, such as a pause. Without
      // lease calls, a timer must check for changes.
      if (!this.#wake.isSet) this.#wakeWithin(pollMs);
      return 0;
    }
    // Events that have not failed are the best test of a dependency. So lease more events than needed to
    // choose from, and return the others to the store.
    return isProbing && room > 0 ? Math.max(room, Math.min(batchMax, room + blame.remembered)) : room;
  }

  /**
   * Leases one suspect (event that may crash the process) at a time, while this process handles no other
   * event.
   */
  #pollSuspects(now: number): void {
    const { exclusiveRun, onStatus } = this.#settings;
    // The current suspect is not finished yet. `ring` is called when its result is stored.
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
      this.#wakeWithin(leftMs + 1);
      void settler.flush();
      return;
    }
    // Another handler has run for longer than `leaseMs`. Handle ordinary events first.
    this.#suspectsNotBefore = now + leaseMs;
    this.#postponeSuspects();
  }

  /**
   * Stops waiting for suspects (events that may crash the process) and handles ordinary events. The answer to
   * the next lease call says whether suspects still wait.
   */
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
    if (!leased) return this.#wakeWithin(pollMs);
    onLeased(leased);
    await this.#receive(leased, sentAt);

    const { deliveries, suspects, nextDueInMs } = leased;
    // While a suspect (event that may crash the process) is leased, `suspects` stays above 0, so that `poll`
    // leases no other event.
    this.#hasSuspect = request.suspects === true && deliveries.length > 0;
    this.suspects = this.#hasSuspect ? Math.max(suspects, 1) : suspects;
    this.nextDueInMs = nextDueInMs;
    if (request.suspects && deliveries.length === 0) this.#postponeSuspects();
    else if (deliveries.length === limit) this.#mayHaveWork = true;
    else this.#wakeWithin(Math.min(this.#pollDelayMs(deliveries.length > 0), nextDueInMs ?? Infinity));
    if (deliveries.length === 0) this.#measured = undefined;
  }

  /**
   * Returns the delay until the next poll. If the engine sends no notifications, the delay is short as long
   * as polls find events.
   */
  #pollDelayMs(foundSome: boolean): number {
    const { pollMs, hasDoorbell } = this.#settings;
    if (hasDoorbell) return pollMs;
    this.#idleMs = foundSome ? idleMinMs : Math.min(pollMs, this.#idleMs * 2);
    return Math.min(pollMs, this.#idleMs);
  }

  /**
   * Returns how many successive events of one key may be leased together. A high number saves writes. But if
   * the first event fails, the others go back to the store unhandled.
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

  /**
   * While a dependency is down, returns only as many tasks as its circuit breakers admit test calls.
   * Otherwise, returns all tasks.
   */
  #chooseProbes(tasks: readonly Task<T>[]): readonly Task<T>[] {
    const { gate, blame, pool, clock } = this.#settings;
    const now = clock.now();
    if (!gate.isProbing(now)) return tasks;
    const hasOrder = this.#ordering === 'key';
    const heads = tasks.filter(
      ({ key }, index) => !hasOrder || key === undefined || key !== tasks[index - 1]?.key,
    );
    // A running or queued handler may also call the dependency, so it counts as a test.
    return blame.probes(heads, Math.max(0, gate.room(now) - pool.running - pool.queued));
  }

  /**
   * Prepares leased events: reads the operators' controls if they have changed, and checks which events were
   * already handled. Returns false if the store does not answer.
   */
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

  /** Calls the store with retries. Returns `undefined` if it does not answer within `leaseMs`. */
  async #askStore<R extends object>(what: string, question: () => Promise<R>): Promise<R | undefined> {
    const { store, onFailure } = this.#settings;
    const ending = await store.try(question, {
      // When the consumer stops, only retries are prevented. A lease call in flight is not aborted: its
      // events would be locked until their leases end.
      retryVeto: () => (this.#isEnding ? 'cancelled' : undefined),
      onWait: ({ delayMs }) => onFailure(what, delayMs),
    });
    return ending.ok ? (ending.value as R) : undefined;
  }

  /** Calls `ring` after `ms`, or earlier if the timer is already set for an earlier time. */
  #wakeWithin(ms: number): void {
    const at = this.#settings.clock.now() + ms;
    if (at < Infinity && (!this.#wake.isSet || at < this.#wake.at)) this.#wake.setAt(at);
  }

  #measure(now: number): void {
    const finished = this.#settings.finished();
    const { at = now, finished: before = finished } = this.#measured ?? {};
    if (now - at < measuredMinMs && this.#measured) return;
    this.#size.measured(finished - before, now - at);
    this.#measured = { at: now, finished };
  }
}

const measuredMinMs = 0.05;
