import { SQSClient, type SQSClientConfig } from '@aws-sdk/client-sqs';
import { readLimits, type SizeLimitOptions, type SizeLimits } from '@holdfast/contracts';
import type { CarrierOptions } from '@holdfast/contracts/carrier';
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

/** The options of `openSqs`. None is required: the AWS client finds the region and the credentials. */
export interface SqsOptions extends CarrierOptions {
  /** The AWS region of the queues, such as `eu-central-1`. Default: as the AWS client finds it. */
  readonly region?: string | undefined;
  /**
   * The address of a server that is compatible with SQS, such as `http://localhost:9324`. Default: Amazon's.
   */
  readonly endpoint?: string | undefined;
  /** The credentials, or a function of the AWS client that finds them. Default: as the AWS client finds them. */
  readonly credentials?: SQSClientConfig['credentials'] | undefined;
  /**
   * An AWS client that you create, instead of `region`, `endpoint` and `credentials`. `close` does not
   * destroy it. It must allow more connections than there are queues, because each queue has an open long
   * poll. Default: none.
   */
  readonly client?: SQSClient | undefined;
  /** The prefix of the names of all queues: letters, digits, hyphens and underscores. Default: none. */
  readonly prefix?: string | undefined;
  /**
   * The visibility timeout. If a process does not extend it, for example after a crash, SQS delivers the
   * event to another process. Whole seconds, from `1s` to `1h`. Default: `30s`.
   */
  readonly visibility?: Duration | undefined;
  /** How long a request waits on the server for events (long polling). Whole seconds, from `1s` to `20s`. Default: `20s`. */
  readonly waitTime?: Duration | undefined;
  /** The most requests for events of one queue that are open at the same time. Default: `8`. */
  readonly receivesMax?: number | undefined;
  /**
   * False: the engine never creates queues. If a queue is missing, the error contains the command that
   * creates it. Default: `true`.
   */
  readonly createQueues?: boolean | undefined;
  /** How long a new queue keeps unfinished events. Whole seconds, from `1m` to `14d`. Default: `14d`. */
  readonly retention?: Duration | undefined;
  /** More SQS attributes for new queues, such as `{ KmsMasterKeyId: 'alias/orders' }`. Default: none. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /**
   * How long to wait for an answer of the server. A request for events gets `waitTime` on top. Default:
   * `10s`.
   */
  readonly timeout?: Duration | undefined;
  /**
   * The most events of a topic that this process fetches in advance, before a handler is free. Default:
   * `200`.
   */
  readonly prefetchMax?: number | undefined;
  /**
   * Size limits of events. A message with its headers can have at most 1 MiB, and a binary payload at most
   * 700,000 bytes. Default: texts of 983,040 bytes, bytes of 700,000.
   */
  readonly limits?: SizeLimitOptions | undefined;
  /**
   * Called when a request for events fails, or when the visibility timeout of an event cannot be extended
   * while it is handled. Default: none.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const known: Readonly<Record<keyof SqsOptions, true>> = {
  region: true,
  endpoint: true,
  credentials: true,
  client: true,
  prefix: true,
  visibility: true,
  waitTime: true,
  receivesMax: true,
  createQueues: true,
  retention: true,
  attributes: true,
  timeout: true,
  limits: true,
  onError: true,
  store: true,
  parkedSuffix: true,
  prefetchMax: true,
  prefetchBytesMax: true,
  idleMs: true,
  clock: true,
  random: true,
};

/**
 * The largest events that fit into a message of SQS: 983,040 bytes of payload. This leaves 64 KiB for all
 * headers, of which the headers of an event may use 16 KiB.
 */
export const sqsLimits: SizeLimits = {
  payloadBytesMax: 1024 * 1024 - 64 * 1024,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

const prefetchMaxDefault = 200;
/** The most connections of the AWS client. Each queue that is read needs one for its long poll. */
const socketsMax = 500;

/** The options of `sqsCarrier`, checked and with all defaults filled in. */
export interface SqsSettings {
  readonly client: SQSClient;
  readonly ownsClient: boolean;
  readonly timeoutMs: number;
  readonly hasStore: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: SizeLimits;
  readonly prefix: string;
  readonly visibilitySeconds: number;
  readonly waitSeconds: number;
  readonly receivesMax: number;
  readonly createQueues: boolean;
  readonly retentionSeconds: number;
  readonly attributes: Readonly<Record<string, string>>;
  onError(error: unknown): void;
}

export function readSqsOptions(options: SqsOptions): {
  readonly settings: SqsSettings;
  readonly rest: CarrierOptions;
} {
  assertKnownFields(known, options);
  const {
    clock = systemClock,
    random = systemRandom,
    store,
    prefix = '',
    createQueues = true,
    attributes = {},
  } = options;
  const { parkedSuffix, prefetchMax = prefetchMaxDefault, prefetchBytesMax, idleMs } = options;
  if (typeof prefix !== 'string' || !/^[\w-]{0,40}$/.test(prefix))
    throw new OptionsError('prefix', prefix, 'at most 40 letters, digits, hyphens and low lines');
  if (parkedSuffix !== undefined && (typeof parkedSuffix !== 'string' || parkedSuffix === ''))
    throw new OptionsError('parkedSuffix', parkedSuffix, 'a text that is not empty');
  if (typeof createQueues !== 'boolean')
    throw new OptionsError('createQueues', createQueues, 'true or false');
  assertCallback('onError', options.onError);
  assertTexts('attributes', attributes);
  const waitSeconds = seconds('waitTime', options.waitTime ?? '20s', 1, 20);
  const settings: SqsSettings = {
    ...clientOf(options),
    ...{ hasStore: store !== undefined, clock, random, prefix, createQueues, attributes, waitSeconds },
    limits: readLimits(options.limits, sqsLimits),
    visibilitySeconds: seconds('visibility', options.visibility ?? '30s', 1, 3600),
    receivesMax: whole('receivesMax', options.receivesMax ?? 8, 1, 50),
    retentionSeconds: seconds('retention', options.retention ?? '14d', 60, 1_209_600),
    onError: options.onError ?? (() => {}),
  };
  const most = whole('prefetchMax', prefetchMax, 1, 100_000);
  const rest = { store, parkedSuffix, prefetchMax: most, prefetchBytesMax, idleMs, clock, random };
  return { settings, rest };
}

function clientOf({
  client,
  region,
  endpoint,
  credentials,
  timeout = '10s',
}: SqsOptions): Pick<SqsSettings, 'client' | 'ownsClient' | 'timeoutMs'> {
  const timeoutMs = durationMs(timeout, 'timeout');
  if (!(timeoutMs >= 1 && timeoutMs < Infinity))
    throw new OptionsError('timeout', timeout, 'a time of at least 1 ms');
  if (client !== undefined) {
    if (typeof client?.send !== 'function')
      throw new OptionsError('client', client, 'an SQSClient of @aws-sdk/client-sqs');
    const beside = Object.entries({ region, endpoint, credentials }).find(([, value]) => value !== undefined);
    if (beside) throw new OptionsError(beside[0], beside[1], 'nothing beside a client');
    return { client, ownsClient: false, timeoutMs };
  }
  assertText('region', region);
  if (endpoint !== undefined && !(typeof endpoint === 'string' && /^https?:\/\/[^/\s]+/.test(endpoint)))
    throw new OptionsError('endpoint', endpoint, 'an address such as "http://localhost:9324"');
  const agent = { maxSockets: socketsMax, keepAlive: true };
  const made = new SQSClient({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
    requestHandler: {
      ...{ httpAgent: agent, httpsAgent: agent, connectionTimeout: timeoutMs, throwOnRequestTimeout: true },
      requestTimeout: timeoutMs,
    },
  });
  return { client: made, ownsClient: true, timeoutMs };
}

function assertText(path: string, value: unknown): void {
  if (value !== undefined && (typeof value !== 'string' || value === ''))
    throw new OptionsError(path, value, 'a text that is not empty');
}

function assertCallback(path: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw new OptionsError(path, value, 'a function');
}

function assertTexts(path: string, value: Readonly<Record<string, string>>): void {
  if (
    typeof value !== 'object' ||
    value === null ||
    Object.values(value).some((each) => typeof each !== 'string')
  )
    throw new OptionsError(path, value, 'texts by their names');
}

function whole(path: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionsError(path, value, `a whole number from ${least} to ${most}`);
}

function seconds(path: string, value: Duration, least: number, most: number): number {
  const count = durationMs(value, path) / 1000;
  if (Number.isInteger(count) && count >= least && count <= most) return count;
  throw new OptionsError(path, value, `a time of whole seconds, from ${least} s to ${most} s`);
}
