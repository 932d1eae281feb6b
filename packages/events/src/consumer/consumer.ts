import 'holdfast/ambient';
import type { Settlement, SettlementKind, TopicCounts } from '@holdfast/contracts';
import { type Duration, durationMs, OptionsError, type Policy, policies, withoutAmbient } from 'holdfast';
import { nearest } from 'holdfast/fields';
import { Blame } from './blame.ts';
import { ConsumerCounters } from './consumer-counters.ts';
import { type ConsumerOptions, readOptions } from './consumer-options.ts';
import { consumerPolicy, storePolicy } from './consumer-policy.ts';
import { addConsumer, removeConsumer } from './consumer-registry.ts';
import { DependencyGate } from './dependency-gate.ts';
import { ConsumerStoppedError, LeaseLostError } from './event-errors.ts';
import { type ConsumerStatus, hasListeners, notify } from './event-notices.ts';
import { Fetcher } from './fetcher.ts';
import { Heartbeat } from './heartbeat.ts';
import { Judge } from './judge.ts';
import { noticeOf } from './settlement-notice.ts';
import { Settler } from './settler.ts';
import { stopAdvice } from './stop-advice.ts';
import { OVER, SETTLING, type Task } from './task.ts';
import { type PauseState, TopicControlState } from './topic-control-state.ts';
import { WorkerPool } from './worker-pool.ts';

/** Handles the events of one topic, from `start` until `stop`. */
export interface Consumer {
  readonly name: string;
  readonly topic: string;
  /** The retry policy of this consumer. `policy.update` changes its settings while the consumer runs. */
  readonly policy: Policy;
  /**
   * Creates the topic if needed and starts to handle events. If `start` rejects, you may call it again. A
   * stopped consumer cannot start again: create a new one.
   */
  start(): Promise<void>;
  /**
   * Leases no more events, and resolves when all leased events are settled. Handlers that take longer than
   * `grace` are aborted, and their events go back to the store.
   */
  stop(options?: { readonly grace?: Duration }): Promise<void>;
  state(): ConsumerState;
  /** Returns how many events of the topic wait, and how long the oldest one has been due. */
  lag(): Promise<TopicCounts>;
}

/** The state of a consumer as plain JSON, for people and dashboards. */
export interface ConsumerState {
  readonly name: string;
  readonly topic: string;
  readonly status: ConsumerStatus;
  readonly concurrency: number;
  readonly running: number;
  /** How many leased events wait for a worker. Successive events with the same key count as one. */
  readonly queued: number;
  /** How many results of handlers the store has not confirmed yet. */
  readonly settling: number;
  readonly suspects: number;
  /** The time until the next event of the topic is due. `null`: events are due now, or no event waits. */
  readonly nextDueInMs: number | null;
  readonly dependsOn: readonly string[];
  /**
   * The policies in `dependsOn` whose circuit breakers admit no calls. No events are leased until this list
   * is empty.
   */
  readonly waitsFor: readonly string[];
  /** The names in `dependsOn` for which this process has no policy. The consumer does not wait for them. */
  readonly unknownDependencies: readonly string[];
  /**
   * The names of payload fields and headers whose values must not be shown. The function `covered` masks
   * them.
   */
  readonly redact: readonly string[];
  /** The pause that an operator has set for the topic. `null`: the topic is not paused. */
  readonly paused: PauseState | null;
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

/** After one of these settlements the event is still in the topic and will be leased again. */
const staysInTopic: ReadonlySet<SettlementKind> = new Set(['retry', 'snooze', 'return']);

/** How long handlers may still run after `stop` has aborted their signals. */
const abortedGraceMs = 1000;

/**
 * Creates a consumer, which calls `handler` for the events of a topic. One consumer per topic and process is enough.
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
  let hasWarned = false;
  let mayWarnOfUnknown = gate.hasDependencies;

  function onStatus(to: ConsumerStatus): void {
    if (to === status) return;
    if (hasListeners()) notify({ ...header(), type: 'status', from: status, to });
    status = to;
  }

  function onFailure(what: string, delayMs: number): void {
    if (hasListeners()) notify({ ...header(), type: 'store_failed', what, delayMs });
  }

  /**
   * Warns when the first event is parked. There is no warning if the application subscribes to the notices.
   */
  function warnOfParked({ id }: Task, { stop, error }: Settlement<Tx> & { kind: 'park' }): void {
    if (hasWarned || hasListeners()) return;
    hasWarned = true;
    const why = error ? `${stop}, ${error.type}: ${error.message}` : stop;
    const advice = stopAdvice(stop, error?.message);
    process.emitWarning(
      `consumer "${name}" has parked event ${id} of topic "${topic}" (${why})${advice === undefined ? '' : `: ${advice}`}. More may follow without a warning: ` +
        'subscribeEvents() tells of each, and "npx -p @holdfast/cli holdfast dlq ls --store <file or postgres URL>" lists them.',
      { code: 'HOLDFAST_PARKED' },
    );
  }

  /**
   * Warns about names in `dependsOn` for which there is no policy. It runs after the first handler call,
   * because the handler may create the policies.
   */
  function warnOfUnknown(): void {
    mayWarnOfUnknown = false;
    for (const unknown of gate.unknown()) {
      const known = policies().map((each) => each.name);
      const meant = nearest(unknown, known);
      const instead =
        meant === undefined ? `it has ${known.join(', ') || 'none'}` : `did you mean "${meant}"?`;
      process.emitWarning(
        `consumer "${name}" depends on the policy "${unknown}", and no policy of this process has that name; ${instead}`,
        { code: 'HOLDFAST_UNKNOWN_DEPENDENCY' },
      );
    }
  }

  function onDecided(task: Task, settlement: Settlement<Tx>): void {
    if (mayWarnOfUnknown) warnOfUnknown();
    // If the handler returned `commit(…)`, its transaction may still fail. So its success is reported in
    // `onSettled`, after the store has confirmed it.
    if (hasListeners() && !hasCommit(settlement)) notify(noticeOf(name, task, settlement, clock.now()));
    if (settlement.kind === 'ack') blame.succeeded(task);
    if (!staysInTopic.has(settlement.kind)) blame.forget(task.id);
    settler.add(task, settlement);
  }

  function onLost(task: Task): void {
    // The event is finished, or its result is being sent to the store. In the second case, the answer of the
    // store says whether the lease was lost.
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
    onRejudged: onDecided,
    onSettled(task, settlement, settled) {
      finished += 1;
      if (settled.took) {
        counters.count(settlement, task.attempt, settled.repeated || task.isRepeated);
        if (settlement.kind === 'park') warnOfParked(task, settlement);
        if (hasListeners() && hasCommit(settlement)) notify(noticeOf(name, task, settlement, clock.now()));
      } else {
        counters.leasesLost += 1;
        if (hasListeners()) notify({ ...header(), ...idOf(task), type: 'lease_lost' });
      }
    },
    onBatch(type, count) {
      if (hasListeners()) notify({ ...header(), type, count });
      if (type === 'settling') return;
      // After this batch of settlements, the next events of the same keys may be due, so lease again.
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
    removeConsumer(made);
    onStatus('stopped');
  }

  async function begin(): Promise<void> {
    const { ordering } = await broker.declare(topic, settings.declared);
    if (settings.parkedKeys === 'block' && ordering !== 'key')
      throw new OptionsError(
        'parkedKeys',
        'block',
        `release, because no event of topic "${topic}" waits for another (its ordering is "${ordering}"): give \`ordering: 'key'\`, too`,
      );
    if (stopped) return;
    addConsumer(made);
    onStatus('running');
    fetcher.begin(ordering);
  }

  let started: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;
  const made: Consumer = {
    name,
    topic,
    policy,

    start() {
      if (started && stopped) return Promise.reject(new ConsumerStoppedError(name));
      started ??= begin().catch((error) => {
        started = undefined;
        throw error;
      });
      return started;
    },

    stop({ grace } = {}) {
      const graceMs = grace === undefined ? settings.graceMs : durationMs(grace, 'grace');
      // A handler may call `stop`. `withoutAmbient` prevents that the deadline of that handler applies to the
      // store calls of `stop`.
      const isBegun = () => (status === 'idle' ? onStatus('stopped') : withoutAmbient(() => stop(graceMs)));
      // `isBegun` also runs if `start` failed. In this case the status is still `idle`, so there is nothing
      // to stop.
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
      waitsFor: gate.waitsFor(clock.now()),
      unknownDependencies: gate.unknown(),
      paused: controls.paused ?? null,
      redact: settings.redact,
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
  return made;
}

function hasCommit<Tx>(settlement: Settlement<Tx>): boolean {
  return settlement.kind === 'ack' && settlement.commit !== undefined;
}

function idOf({ id, key, attempt }: Task): { id: string; key: string | undefined; attempt: number } {
  return { id, key, attempt };
}
