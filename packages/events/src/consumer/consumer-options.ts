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
import { assertFormat, type PayloadFormat } from '../publish/payload-format.ts';
import { assertSchema, type StandardSchema } from '../publish/standard-schema.ts';
import type { ConsumerPolicySpec } from './consumer-policy.ts';
import { type ExclusiveRun, processExclusiveRun } from './exclusive-run.ts';
import type { Handler } from './task.ts';

export interface ConsumerOptions<T = unknown, Tx = unknown> {
  /** The engine that stores the events. Alternatively, give `broker` and `ledger`. */
  readonly engine?: Engine<Tx> | undefined;
  readonly broker?: Broker<Tx> | undefined;
  readonly ledger?: Ledger<Tx> | undefined;
  /** The store of parked events, if it is not part of the broker's store. */
  readonly triage?: Triage | undefined;
  readonly topic: string;
  readonly handler: Handler<T, Tx>;
  /**
   * The name and version of the handler, such as `invoices@2`; the topic unless given. Handled events are marked with
   * this name, so that they are not handled twice.
   */
  readonly name?: string | undefined;
  readonly schema?: StandardSchema<T> | undefined;
  readonly format?: PayloadFormat | undefined;
  /**
   * The ordering with which the topic is declared. Unless given, an existing topic keeps its ordering, and a new topic
   * has `none`.
   */
  readonly ordering?: Ordering | undefined;
  /** How long acknowledged and discarded events are kept, so that `rebuild` can handle them again. */
  readonly keepSettled?: Duration | undefined;
  /** How many handlers run at the same time; 10 unless given. */
  readonly concurrency?: number | undefined;
  readonly policy?: ConsumerPolicySpec | undefined;
  /**
   * Which events are marked as handled, so that their effect is not repeated. `commit`: events whose handler returns
   * `commit(…)`. `once`: all events, and the marks are checked before each handler call. `off`: no events. `commit`
   * unless given.
   */
  readonly effects?: 'commit' | 'once' | 'off' | undefined;
  /**
   * The names of the policies with which the handler calls other systems. While all circuit breakers of one of them are
   * open, no events are leased.
   */
  readonly dependsOn?: readonly string[] | undefined;
  /** The part of each lease that is reserved for retries while first attempts wait as well, 0–1; 0.25 unless given. */
  readonly retriesShare?: number | undefined;
  /**
   * False: calls that the handler makes do not inherit the patience, idempotency key and signal of the event. This
   * saves a microsecond per event.
   */
  readonly ambient?: boolean | undefined;
  /** The time after which the `signal` of an attempt aborts; no limit unless given. */
  readonly attemptTimeout?: Duration | undefined;
  /**
   * How long later events of the same key wait for a failing event, counted from the first publish of the failing
   * event; without limit unless given.
   */
  readonly holdFor?: Duration | undefined;
  /**
   * `block`: later events of the key wait for a parked event until it is replayed or unblocked. `release`: they do not
   * wait. `release` unless given.
   */
  readonly parkedKeys?: 'release' | 'block' | undefined;
  readonly keepParked?: Duration | undefined;
  readonly lease?: Duration | undefined;
  readonly deathsMax?: number | undefined;
  readonly snoozesMax?: number | undefined;
  /** The names of fields whose values are masked in stored errors. */
  readonly redact?: readonly string[] | undefined;
  readonly grace?: Duration | undefined;
  /** The most events that one lease call returns, and that one write settles; 1000 unless given. */
  readonly batchMax?: number | undefined;
  /** The most payload bytes of events that the consumer holds; 32 MiB unless given. One event may exceed the limit. */
  readonly bytesMax?: number | undefined;
  /**
   * How long a settlement (the result of an event) waits for other settlements, so that they share one write; 5 ms
   * unless given.
   */
  readonly settleWithin?: Duration | undefined;
  /**
   * The longest time between two polls, in case the engine does not notify the consumer of a due event; 1 s unless
   * given.
   */
  readonly poll?: Duration | undefined;
  /**
   * A lock that is shared by consumers: its owner handles one event while the other consumers handle nothing. One lock
   * per process unless given. Tests that simulate several processes give one lock for each.
   */
  readonly exclusiveRun?: ExclusiveRun | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** The consumer options with defaults and with durations in ms. */
export interface ConsumerSettings<T, Tx> {
  readonly name: string;
  readonly topic: string;
  /** The name of this consumer in leases. It is different for each start. */
  readonly owner: string;
  readonly broker: Broker<Tx>;
  readonly ledger: Ledger<Tx> | undefined;
  /** True: before each handler call, the ledger is asked whether the event was handled before. */
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

/** Checks a list of names. It throws for a plain string too, because a string could be read as a list of letters. */
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
