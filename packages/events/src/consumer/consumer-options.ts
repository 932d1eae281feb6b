import {
  assertName,
  type Broker,
  type Engine,
  type Ledger,
  type Ordering,
  type TopicSettings,
  type Triage,
  timeOrderedId,
} from '@holdfast/contracts';
import {
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  type Random,
  systemClock,
  systemRandom,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { assertAwaited } from '../publish/assert-awaited.ts';
import { assertFormat, type PayloadFormat } from '../publish/payload-format.ts';
import { assertSchema, type StandardSchema } from '../publish/standard-schema.ts';
import type { ConsumerPolicySpec } from './consumer-policy.ts';
import { type ExclusiveRun, processExclusiveRun } from './exclusive-run.ts';
import type { Handler } from './task.ts';

/** The options of `consumer`. Required are `topic`, `handler`, and `engine` or `broker`. */
export interface ConsumerOptions<T = unknown, Tx = unknown> {
  /**
   * The store of the events, for example what `openSqlite` returns. Give either `engine`, or `broker` and
   * `ledger`. Default: none.
   */
  readonly engine?: Engine<Tx> | undefined;
  /**
   * The store of the events, if you do not give `engine` or want another store. Default: that of `engine`.
   */
  readonly broker?: Broker<Tx> | undefined;
  /**
   * The store that remembers which events were handled, if it is not the one of `engine`. Default: that of
   * `engine`.
   */
  readonly ledger?: Ledger<Tx> | undefined;
  /**
   * The store of parked events (events set aside for an operator), if it is another store than the broker.
   * Default: that of `engine`.
   */
  readonly triage?: Triage | undefined;
  /** The name of the topic to consume. It is created if it does not exist. Required. */
  readonly topic: string;
  /**
   * Called for each event. If its promise resolves, the event is done. If it rejects, the event is retried or
   * parked. Required.
   */
  readonly handler: Handler<T, Tx>;
  /**
   * The name and version of the handler, such as `invoices@2`. It is stored with handled events, so that they are not
   * handled twice. Default: the topic.
   */
  readonly name?: string | undefined;
  /**
   * The schema of the payload: any Standard Schema, such as one of zod. An event whose payload does not match
   * is parked at once. Default: none.
   */
  readonly schema?: StandardSchema<T> | undefined;
  /** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. Default: `json`. */
  readonly format?: PayloadFormat | undefined;
  /**
   * The ordering of the topic. `key`: events with the same key are handled one after the other. Default: an
   * existing topic keeps its own, a new one has `none`.
   */
  readonly ordering?: Ordering | undefined;
  /**
   * How long the store keeps finished events, so that `rebuild` can handle them again. Default: that of the
   * topic; a new one keeps none.
   */
  readonly keepSettled?: Duration | undefined;
  /** How many handlers run at the same time. Default: `10`. */
  readonly concurrency?: number | undefined;
  /** When failed events are retried, and how often. Default: six attempts, with waits from 500 ms to a minute. */
  readonly policy?: ConsumerPolicySpec | undefined;
  /**
   * Which handled events are recorded, so that their effect is not repeated. `commit`: events whose handler
   * returns `commit(…)`. `once`: all events. `off`: none. Default: `commit`.
   */
  readonly effects?: 'commit' | 'once' | 'off' | undefined;
  /**
   * The names of the policies with which the handler calls other systems. While all circuit breakers of one
   * of these policies are open, the consumer leases no events. Default: none.
   */
  readonly dependsOn?: readonly string[] | undefined;
  /** The share of each leased batch that is reserved for retries, from 0 to 1. Default: `0.25`. */
  readonly retriesShare?: number | undefined;
  /**
   * False: calls that the handler makes through a policy do not inherit the deadline, idempotency key and
   * signal of the event. This saves a microsecond per event. Default: `true`.
   */
  readonly ambient?: boolean | undefined;
  /**
   * The time limit of one handler call. After this time, the `signal` of the event aborts. Default: never.
   */
  readonly attemptTimeout?: Duration | undefined;
  /**
   * How long a failing event may make later events with the same key wait. The time starts when the failing
   * event is first published. Default: no limit.
   */
  readonly holdFor?: Duration | undefined;
  /**
   * What happens to later events with the key of a parked event. `block`: they wait until an operator replays
   * or unblocks the parked event. `release`: they do not wait. Default: `release`.
   */
  readonly parkedKeys?: 'release' | 'block' | undefined;
  /**
   * How long the store keeps events that this consumer parks. Default: that of the engine, usually 30 days.
   */
  readonly keepParked?: Duration | undefined;
  /**
   * The duration of a lease. While the handler runs, the process extends the lease. After a crash, another
   * process gets the event when the lease ends. Default: `30s`.
   */
  readonly lease?: Duration | undefined;
  /** An event is parked when the process has died this often while handling it. Default: `3`. */
  readonly deathsMax?: number | undefined;
  /**
   * An event is parked when its handler has returned `snooze(…)` this often. Delays because of an open
   * breaker do not count. Default: `100`.
   */
  readonly snoozesMax?: number | undefined;
  /** The names of payload fields and headers whose values are masked in stored errors. Default: none. */
  readonly redact?: readonly string[] | undefined;
  /** How long running handlers may continue after `stop`. Then their `signal` aborts. Default: `20s`. */
  readonly grace?: Duration | undefined;
  /** The most events that one call of the store leases. Default: `1000`. */
  readonly batchMax?: number | undefined;
  /**
   * The most payload bytes of all leased events together. A single event may be larger. Default: `33554432`
   * (32 MiB).
   */
  readonly bytesMax?: number | undefined;
  /**
   * How long the result of a handler waits for other results, so that they share one write to the store.
   * Default: `5ms`.
   */
  readonly settleWithin?: Duration | undefined;
  /** The longest time between two polls of the store. Default: `1s`. */
  readonly poll?: Duration | undefined;
  /**
   * A lock with which a consumer handles one event while the process handles nothing else. It is used for
   * events that may have crashed a process. Default: one for all consumers of the process.
   */
  readonly exclusiveRun?: ExclusiveRun | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

export interface ConsumerSettings<T, Tx> {
  readonly name: string;
  readonly topic: string;
  /** The name under which this consumer leases events. It is different after every start. */
  readonly owner: string;
  readonly broker: Broker<Tx>;
  readonly ledger: Ledger<Tx> | undefined;
  /** True: before each handler call, the consumer checks in the ledger whether the event was already handled. */
  readonly looksUp: boolean;
  readonly marks: {
    readonly ofCommits: readonly string[] | undefined;
    readonly ofAll: readonly string[] | undefined;
  };
  readonly separateLedger: Ledger<Tx> | undefined;
  readonly separateTriage: Triage | undefined;
  readonly handler: Handler<T, Tx>;
  readonly schema: StandardSchema<T> | undefined;
  readonly format: PayloadFormat;
  readonly declared: Partial<TopicSettings>;
  readonly concurrency: number;
  readonly policy: ConsumerPolicySpec;
  readonly dependsOn: readonly string[];
  readonly retriesShare: number;
  readonly ambient: boolean;
  readonly attemptTimeoutMs: number;
  readonly holdForMs: number;
  readonly parkedKeys: 'release' | 'block';
  readonly keepParkedMs: number | undefined;
  readonly leaseMs: number;
  readonly deathsMax: number;
  readonly snoozesMax: number;
  readonly redact: readonly string[];
  readonly graceMs: number;
  readonly batchMax: number;
  readonly bytesMax: number;
  readonly settleWithinMs: number;
  readonly pollMs: number;
  readonly hasDoorbell: boolean;
  readonly exclusiveRun: ExclusiveRun;
  readonly clock: Clock;
  readonly random: Random;
}

export function readOptions<T, Tx>(options: ConsumerOptions<T, Tx>): ConsumerSettings<T, Tx> {
  assertKnownFields(known, options);
  const { engine, topic, clock = systemClock, random = systemRandom } = options;
  assertAwaited(engine);
  const broker = options.broker ?? engine?.broker;
  const ledger = options.ledger ?? engine?.ledger;
  if (!broker) throw new OptionsError('broker', broker, 'a broker, or an engine that has one');
  if (typeof topic !== 'string' || topic === '')
    throw new OptionsError('topic', topic, 'the name of a topic');
  if (typeof options.handler !== 'function') throw new OptionsError('handler', options.handler, 'a function');
  const name = options.name ?? topic;
  if (typeof name !== 'string' || name === '') throw new OptionsError('name', name, 'a name for the handler');
  assertName('name', name);
  const effects = oneOf('effects', options.effects ?? 'commit', ['commit', 'once', 'off']);
  if (effects === 'once' && !ledger)
    throw new OptionsError('ledger', ledger, 'a ledger, because effects are once');
  const { keepSettled, keepParked, ordering } = options;
  const ms = (path: string, value: Duration, least = 0) => atLeast(path, durationMs(value, path), least);
  const named = [name];
  return {
    name,
    topic,
    owner: `${name}/${timeOrderedId(clock, random)()}`,
    broker,
    ledger,
    looksUp: effects === 'once',
    marks: {
      ofCommits: effects === 'off' ? undefined : named,
      ofAll: effects === 'once' ? named : undefined,
    },
    separateLedger: engine && engine.features.marksWithSettlement !== true ? ledger : undefined,
    separateTriage:
      options.triage ?? (engine && engine.features.parksInTriage !== true ? engine.triage : undefined),
    handler: options.handler,
    schema: assertSchema(options.schema),
    format: assertFormat(options.format ?? 'json'),
    declared: {
      ...(ordering !== undefined && { ordering: oneOf('ordering', ordering, ['none', 'key']) }),
      ...(keepSettled !== undefined && { keepSettledMs: ms('keepSettled', keepSettled) }),
    },
    concurrency: whole('concurrency', options.concurrency ?? 10, 1),
    policy: options.policy ?? {},
    dependsOn: names('dependsOn', options.dependsOn ?? []),
    retriesShare: ratio('retriesShare', options.retriesShare ?? 0.25),
    ambient: options.ambient ?? true,
    attemptTimeoutMs: ms('attemptTimeout', options.attemptTimeout ?? Infinity, 1),
    holdForMs: ms('holdFor', options.holdFor ?? Infinity),
    parkedKeys: oneOf('parkedKeys', options.parkedKeys ?? 'release', ['release', 'block']),
    keepParkedMs: keepParked === undefined ? undefined : ms('keepParked', keepParked, 1),
    leaseMs: ms('lease', options.lease ?? '30s', 1),
    deathsMax: whole('deathsMax', options.deathsMax ?? 3, 1),
    snoozesMax: whole('snoozesMax', options.snoozesMax ?? 100, 0),
    redact: names('redact', options.redact ?? []),
    graceMs: ms('grace', options.grace ?? '20s'),
    batchMax: whole('batchMax', options.batchMax ?? 1000, 1),
    bytesMax: whole('bytesMax', options.bytesMax ?? 32 * 1024 * 1024, 1),
    settleWithinMs: ms('settleWithin', options.settleWithin ?? '5ms'),
    hasDoorbell: engine === undefined || engine.features.doorbell === true,
    pollMs: ms('poll', options.poll ?? '1s', 1),
    exclusiveRun: options.exclusiveRun ?? processExclusiveRun,
    clock,
    random,
  };
}

const known: Readonly<Record<keyof ConsumerOptions, true>> = {
  engine: true,
  broker: true,
  ledger: true,
  triage: true,
  topic: true,
  handler: true,
  name: true,
  schema: true,
  format: true,
  ordering: true,
  keepSettled: true,
  concurrency: true,
  policy: true,
  effects: true,
  dependsOn: true,
  retriesShare: true,
  ambient: true,
  attemptTimeout: true,
  holdFor: true,
  parkedKeys: true,
  keepParked: true,
  lease: true,
  deathsMax: true,
  snoozesMax: true,
  redact: true,
  grace: true,
  batchMax: true,
  bytesMax: true,
  settleWithin: true,
  poll: true,
  exclusiveRun: true,
  clock: true,
  random: true,
};

/** Reads a list of names. A single string is refused: its letters would be read as names. */
function names(path: string, value: readonly string[]): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== ''))
    return [...value];
  throw new OptionsError(path, value, 'a list of names');
}

function whole(path: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new OptionsError(path, value, `a whole number from ${least}`);
}

function ratio(path: string, value: number): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw new OptionsError(path, value, 'a number from 0 to 1');
}

function atLeast(path: string, ms: number, least: number): number {
  if (ms >= least) return ms;
  throw new OptionsError(path, ms, `at least ${least} ms`);
}

function oneOf<W extends string>(path: string, value: W, words: readonly W[]): W {
  if (words.includes(value)) return value;
  throw new OptionsError(path, value, words.join(' or '));
}
