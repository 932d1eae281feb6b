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
  /** The engine that has the events. Instead of it, `broker` and `ledger` may be given. */
  readonly engine?: Engine<Tx> | undefined;
  readonly broker?: Broker<Tx> | undefined;
  readonly ledger?: Ledger<Tx> | undefined;
  /** The parking lot, if it is not in the store of the broker. */
  readonly triage?: Triage | undefined;
  readonly topic: string;
  readonly handler: Handler<T, Tx>;
  /** The name of the handler, with its version. Handled events are marked with it. The topic unless given. */
  readonly name?: string | undefined;
  readonly schema?: StandardSchema<T> | undefined;
  readonly format?: PayloadFormat | undefined;
  /** Declares the topic with this ordering. Unless given, an existing topic keeps its own, and a new one has `none`. */
  readonly ordering?: Ordering | undefined;
  /** How long settled events are kept, for `rebuild`. */
  readonly keepSettled?: Duration | undefined;
  /** How many handlers run at once; 10 unless given. */
  readonly concurrency?: number | undefined;
  readonly policy?: ConsumerPolicySpec | undefined;
  /** `commit`: marks events with a commit. `once`: looks up and marks every event. `off`: no marks. `commit` unless given. */
  readonly effects?: 'commit' | 'once' | 'off' | undefined;
  /** Names of policies that the handler needs. While the breakers of one are open, no events are leased. */
  readonly dependsOn?: readonly string[] | undefined;
  /** The part of a lease that is for retries while first attempts wait as well, 0–1; 0.25 unless given. */
  readonly retriesShare?: number | undefined;
  /** False: calls of the handler do not inherit patience, key and signal, which saves a microsecond an event. */
  readonly ambient?: boolean | undefined;
  /** The signal of an attempt aborts after this time; no limit unless given. */
  readonly attemptTimeout?: Duration | undefined;
  /** How long a failing event keeps its key waiting, counted from when it was first seen; without limit unless given. */
  readonly holdFor?: Duration | undefined;
  /** `block`: a parked event keeps its key waiting until it is replayed or unblocked. `release` unless given. */
  readonly parkedKeys?: 'release' | 'block' | undefined;
  readonly keepParked?: Duration | undefined;
  readonly lease?: Duration | undefined;
  readonly deathsMax?: number | undefined;
  readonly snoozesMax?: number | undefined;
  /** Names of fields whose values are masked in stored errors. */
  readonly redact?: readonly string[] | undefined;
  readonly grace?: Duration | undefined;
  /** The most events in one lease or one batch of settlements; 1000 unless given. */
  readonly batchMax?: number | undefined;
  /** The most payload bytes of unsettled events. The last lease may exceed it by one event. 32 MiB unless given. */
  readonly bytesMax?: number | undefined;
  /** How long a settlement waits for others to share its write; 5 ms unless given. */
  readonly settleWithin?: Duration | undefined;
  /** The longest time between two polls, in case the doorbell does not ring; 1 s unless given. */
  readonly poll?: Duration | undefined;
  /** Shared by consumers that die together; one for the whole process unless given. For tests that simulate several processes. */
  readonly exclusiveRun?: ExclusiveRun | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** The options with defaults filled in and durations in ms. */
export interface ConsumerSettings<T, Tx> {
  readonly name: string;
  readonly topic: string;
  /** A new name for each start. */
  readonly owner: string;
  readonly broker: Broker<Tx>;
  readonly ledger: Ledger<Tx> | undefined;
  /** The ledger is asked about every event before its handler is called. */
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

/** Throws for a plain string, which would otherwise pass as a list of its letters. */
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
