import 'holdfast/ambient';
import type { Settlement, SettlementKind, TopicCounts } from '@holdfast/contracts';
import { type Duration, durationMs, type Policy, withoutAmbient } from 'holdfast';
import { Blame } from './blame.ts';
import { ConsumerCounters } from './consumer-counters.ts';
import { type ConsumerOptions, readOptions } from './consumer-options.ts';
import { consumerPolicy, storePolicy } from './consumer-policy.ts';
import { DependencyGate } from './dependency-gate.ts';
import { ConsumerStoppedError, LeaseLostError } from './event-errors.ts';
import { type ConsumerStatus, hasListeners, notify } from './event-notices.ts';
import { Fetcher } from './fetcher.ts';
import { Heartbeat } from './heartbeat.ts';
import { Judge } from './judge.ts';
import { noticeOf } from './settlement-notice.ts';
import { Settler } from './settler.ts';
import { OVER, SETTLING, type Task } from './task.ts';
import { TopicControlState } from './topic-control-state.ts';
import { WorkerPool } from './worker-pool.ts';

export interface Consumer {
  readonly name: string;
  readonly topic: string;
  /** The retry policy of this consumer. Its `update` changes the settings, and its `kill` stops all retries. */
  readonly policy: Policy;
  /**
   * Declares the topic and starts to handle events. If it rejects, it can be called again. After `stop`, create a new
   * consumer.
   */
  start(): Promise<void>;
  /**
   * Stops leasing events, and resolves when all leased events are settled. Events whose handlers take longer than
   * `grace` are returned to the store.
   */
  stop(options?: { readonly grace?: Duration }): Promise<void>;
  state(): ConsumerState;
  /**
   * Returns the number of waiting events by state, how long the oldest event has been due, and when the next event is
   * due.
   */
  lag(): Promise<TopicCounts>;
}

/** The current state of a consumer as plain JSON, for people and dashboards. */
export interface ConsumerState {
  readonly name: string;
  readonly topic: string;
  readonly status: ConsumerStatus;
  readonly concurrency: number;
  readonly running: number;
  /** How many leased events wait for a worker. With ordering by key, successive events of one key count as one. */
  readonly queued: number;
  /** How many events have a decided result that the store has not confirmed yet. */
  readonly settling: number;
  readonly suspects: number;
  /** The time until the next waiting event is due. `null`: more events are due now, or no event waits. */
  readonly nextDueInMs: number | null;
  readonly dependsOn: readonly string[];
  readonly counters: Readonly<Record<(typeof counted)[number], number>> & {
    readonly parkedBecause: Readonly<Record<string, number>>;
  };
}

const counted = [
  'attempts',
  'succeeded',
  'successAfterRetry',
  'retryAttempts',
  'snoozed',
  'parked',
  'discarded',
  'rerouted',
  'returned',
  'leasesLost',
  'repeated',
  'dlqRate',
] as const satisfies readonly (keyof ConsumerCounters)[];

/** After these settlements the event is still in the topic. */
const staysInTopic: ReadonlySet<SettlementKind> = new Set(['retry', 'snooze', 'return']);

/** How long handlers may still run after `stop` has aborted their signals. */
const abortedGraceMs = 1000;

/**
 * Creates a consumer, which calls a handler for the events of a topic. One consumer per topic and process is enough,
 * because a consumer runs many handlers at the same time.
 */
export function consumer<T = unknown, Tx = unknown>(options: ConsumerOptions<T, Tx>): Consumer {
  const settings = readOptions(options);
  const { name, topic, broker, clock, random, leaseMs, exclusiveRun } = settings;
  const policy = consumerPolicy(settings.policy, { clock, random });
  const store = storePolicy(
    { attempts: 'unlimited', patience: leaseMs, retryOn: 'any', backoff: { base: '20ms', cap: '2s' } },
    { clock, random },
  );
  const counters = new ConsumerCounters();
  const gate = new DependencyGate(settings.dependsOn);
  const blame = new Blame(gate);
  const controls = new TopicControlState(broker.controls, topic);
  const judge = new Judge<Tx>({ ...settings, policy, gate, blame, controls });
  const concurrency = () => Math.max(0, controls.concurrencyMax ?? settings.concurrency);
  const header = (at = clock.now()) => ({ consumer: name, topic, at });
  let status: ConsumerStatus = 'idle';
  let finished = 0;

  function onStatus(to: ConsumerStatus): void {
    if (to === status) return;
    if (hasListeners()) notify({ ...header(), type: 'status', from: status, to });
    status = to;
  }

  function onFailure(what: string, delayMs: number): void {
    if (hasListeners()) notify({ ...header(), type: 'store_failed', what, delayMs });
  }

  function onDecided(task: Task, settlement: Settlement<Tx>): void {
    if (hasListeners()) notify(noticeOf(name, task, settlement, clock.now()));
    if (settlement.kind === 'ack') blame.succeeded(task);
    if (!staysInTopic.has(settlement.kind)) blame.forget(task.id);
    settler.add(task, settlement);
  }

  function onLost(task: Task): void {
    // A settlement of this event is on its way to the store, or the event is finished. If the lease is lost, the answer
    // of the store tells it.
    if (task.phase === SETTLING || task.phase === OVER) return;
    task.abort(new LeaseLostError(task.id));
    pool.revoke(task as Task<T>);
    task.end(OVER);
    task.batch.open -= 1;
    counters.leasesLost += 1;
    if (hasListeners()) notify({ ...header(), ...idOf(task), type: 'lease_lost' });
    pool.startWorkers();
    fetcher.poll();
  }

  const settler = new Settler<Tx>({
    ...settings,
    judge,
    store,
    onFailure,
    onSettled(task, settlement, settled) {
      finished += 1;
      if (settled.took) counters.count(settlement, task.attempt, settled.repeated || task.isRepeated);
      else {
        counters.leasesLost += 1;
        if (hasListeners()) notify({ ...header(), ...idOf(task), type: 'lease_lost' });
      }
    },
    onBatch(type, count) {
      if (hasListeners()) notify({ ...header(), type, count });
      if (type === 'settling') return;
      // A settlement may make the next event of the same key due.
      fetcher.ring();
      if (fetcher.isIdle) exclusiveRun.notifyOwner();
    },
  });
  const heartbeat = new Heartbeat({ broker, clock, leaseMs, onLost, onFailure });
  const pool = new WorkerPool<T, Tx>({
    ...settings,
    judge,
    gate,
    concurrency,
    onBegin(task, now) {
      counters.attempts += 1;
      blame.begin(task);
      if (hasListeners()) notify({ ...header(now), ...idOf(task), type: 'begun', mode: task.mode });
    },
    onDecided,
    onRoom: () => fetcher.poll(),
    onOutOfWork: () => void settler.flush(),
  });
  const fetcher = new Fetcher<T, Tx>({
    ...settings,
    pool,
    settler,
    heartbeat,
    gate,
    blame,
    controls,
    store,
    ledger: settings.looksUp ? settings.ledger : undefined,
    concurrency,
    finished: () => finished,
    onStatus,
    onFailure,
    onLeased({ deliveries, suspects }) {
      if (hasListeners()) notify({ ...header(), type: 'leased', count: deliveries.length, suspects });
    },
  });

  async function stop(graceMs: number): Promise<void> {
    onStatus('stopping');
    await fetcher.end();
    const running = () => [...heartbeat.inHand()].filter((task) => task.isRunning);
    if (!(await pool.close(graceMs))) {
      for (const task of running()) task.abort(new ConsumerStoppedError(name));
      await pool.close(abortedGraceMs);
      for (const task of running()) onDecided(task, { lease: task.delivery.lease, kind: 'return' });
    }
    while (settler.unsettled > 0) await settler.flush();
    heartbeat.stop();
    exclusiveRun.leave(fetcher);
    onStatus('stopped');
  }

  async function begin(): Promise<void> {
    const { ordering } = await broker.declare(topic, settings.declared);
    if (stopped) return;
    onStatus('running');
    fetcher.begin(ordering);
  }

  let started: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;
  return {
    name,
    topic,
    policy,

    start() {
      // Reject, because a resolved promise would suggest that events are handled.
      if (started && stopped) return Promise.reject(new ConsumerStoppedError(name));
      started ??= begin().catch((error) => {
        started = undefined;
        throw error;
      });
      return started;
    },

    stop({ grace } = {}) {
      const graceMs = grace === undefined ? settings.graceMs : durationMs(grace, 'grace');
      // A handler may call `stop`. Leave the ambient context of that handler, so that its deadline and signal do not
      // apply to the settlements.
      const isBegun = () => (status === 'idle' ? onStatus('stopped') : withoutAmbient(() => stop(graceMs)));
      // If `start` failed, its caller has got the error, and there is nothing to stop.
      stopped ??= started ? started.then(isBegun, isBegun) : Promise.resolve(isBegun());
      return stopped;
    },

    state: () => ({
      name,
      topic,
      status,
      concurrency: concurrency(),
      running: pool.running,
      queued: pool.queued,
      settling: settler.unsettled,
      suspects: fetcher.suspects,
      nextDueInMs: fetcher.nextDueInMs ?? null,
      dependsOn: gate.names,
      counters: {
        ...(Object.fromEntries(counted.map((each) => [each, counters[each]])) as Record<
          (typeof counted)[number],
          number
        >),
        parkedBecause: { ...counters.parkedBecause },
      },
    }),

    lag: () => broker.counts(topic),
  };
}

function idOf({ id, key, attempt }: Task): { id: string; key: string | undefined; attempt: number } {
  return { id, key, attempt };
}
