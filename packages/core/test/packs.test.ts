import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { any } from '../src/classify/any.ts';
import { aws } from '../src/classify/aws.ts';
import { grpc } from '../src/classify/grpc.ts';
import { http } from '../src/classify/http.ts';
import { kafka } from '../src/classify/kafka.ts';
import { network } from '../src/classify/network.ts';
import { sql } from '../src/classify/sql.ts';
import type { Judgement, Pack } from '../src/decide/outcome.ts';

const packs = [network, http, sql, grpc, aws, kafka, any];

function judge(pack: Pack, properties: object): Judgement | undefined {
  const error = Object.assign(new Error('failed'), properties);
  const judged = pack.classify({ ok: false, error }, () => 0);
  return typeof judged === 'string' ? { class: judged } : judged;
}

describe('sql', () => {
  test.each([
    ['serialization failure', { code: '40001' }],
    ['deadlock', { code: '40P01' }],
    ['never connected', { code: '08001' }],
    ['connection rejected', { code: '08004' }],
    ['still starting', { code: '57P03' }],
    ['MySQL deadlock', { code: 'ER_LOCK_DEADLOCK', errno: 1213, sqlState: '40001' }],
    ['MySQL cannot connect', { errno: 2003 }],
    ['MariaDB pool timeout', { errno: 45028 }],
    ['postgres.js connect timeout', { code: 'CONNECT_TIMEOUT' }],
    ['pg pool timeout', { message: 'timeout exceeded when trying to connect' }],
    ['Prisma write conflict', { code: 'P2034' }],
  ])('%s is transient, and nothing was done', (_, error) => {
    expect(judge(sql, error)).toEqual({ class: 'transient', unprocessed: true });
  });

  test.each([
    ['connection lost', { code: '08006' }],
    ['outcome unknown', { code: '08007' }],
    ['server shutting down', { code: '57P01' }],
    ['server crashed', { code: '57P02' }],
    ['lock not available', { code: '55P03' }],
    ['pg connection lost', { message: 'Connection terminated unexpectedly' }],
    ['postgres.js connection lost', { code: 'CONNECTION_CLOSED' }],
    ['SQLite busy', { code: 'SQLITE_BUSY' }],
    ['SQLite snapshot', { code: 'SQLITE_BUSY_SNAPSHOT' }],
    ['SQLite locked', { code: 'SQLITE_LOCKED', errno: 6 }],
    ['node:sqlite busy', { code: 'ERR_SQLITE_ERROR', errcode: 5 }],
    ['node:sqlite, extended', { code: 'ERR_SQLITE_ERROR', errcode: 517 }],
    ['MySQL lock wait', { errno: 1205 }],
    ['SQL Server deadlock', { code: 'EREQUEST', number: 1205 }],
    ['MySQL gone away', { errno: 2006 }],
    ['MySQL lost', { errno: 2013 }],
    ['mysql2 lost', { code: 'PROTOCOL_CONNECTION_LOST' }],
    ['MariaDB socket closed', { errno: 45026, sqlState: '08S01' }],
    ['Prisma connection closed', { code: 'P1017' }],
  ])('%s is transient, and nothing is proved', (_, error) => {
    expect(judge(sql, error)).toEqual({ class: 'transient', unprocessed: false });
  });

  test.each([
    ['too many connections', { code: '53300' }, true],
    ['MySQL too many connections', { errno: 1040, sqlState: '08004' }, true],
    ['disk full', { code: '53100' }, false],
    ['out of memory', { code: '53200' }, false],
  ])('%s is throttled', (_, error, unprocessed) => {
    expect(judge(sql, error)).toEqual({ class: 'throttled', unprocessed });
  });

  test.each([
    { code: '23505' },
    { code: '42601' },
    { code: '57014' },
    { code: '22P02' },
    { errno: 1062 },
    { errno: 5 },
    { errno: -104 },
    { code: 'SQLITE_CONSTRAINT' },
    { code: 'ERR_SQLITE_ERROR', errcode: 19 },
    { code: 'P2002' },
    { code: 8 },
    {},
  ])('%j is not known here', (error) => {
    expect(judge(sql, error)).toBeUndefined();
  });

  test('knows a real locked database, also behind another error', () => {
    const path = `file:locked-${process.pid}?mode=memory&cache=shared`;
    const [one, two] = [new DatabaseSync(path), new DatabaseSync(path)];
    one.exec('CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)');
    let error: unknown;
    try {
      two.exec('INSERT INTO t VALUES (2)');
    } catch (caught) {
      error = caught;
    }
    one.close();
    two.close();
    const outer = new Error('while saving', { cause: error });
    expect(sql.classify({ ok: false, error: outer }, () => 0)).toEqual({
      class: 'transient',
      unprocessed: false,
    });
  });
});

describe('grpc', () => {
  /** As grpc-js has it: values in lists. */
  const metadata = (pushback?: string) => ({
    get: (name: string) => (name === 'grpc-retry-pushback-ms' && pushback !== undefined ? [pushback] : []),
  });

  test.each([
    [1, 'ignored'],
    [2, 'fatal'],
    [3, 'fatal'],
    [4, 'transient'],
    [5, 'fatal'],
    [7, 'fatal'],
    [8, 'throttled'],
    [9, 'fatal'],
    [10, 'transient'],
    [12, 'fatal'],
    [13, 'fatal'],
    [14, 'transient'],
    [16, 'fatal'],
  ])('status %d is %s', (code, expected) => {
    expect(judge(grpc, { code, details: '', metadata: metadata() })?.class).toBe(expected);
    expect(judge(grpc, { code, metadata: new Headers() })?.class).toBe(expected);
    expect(judge(grpc, { code, details: 'x' })?.class).toBe(expected);
  });

  test.each([
    ['250', { retryAfterMs: 250, retryNever: false }],
    ['0', { retryAfterMs: 0, retryNever: false }],
    ['-1', { retryAfterMs: undefined, retryNever: true }],
    ['soon', { retryAfterMs: undefined, retryNever: true }],
    ['1.5', { retryAfterMs: undefined, retryNever: true }],
    ['9'.repeat(400), { retryAfterMs: undefined, retryNever: true }],
    [undefined, { retryAfterMs: undefined, retryNever: false }],
  ])('a pushback of %s is followed, and one that is no number means never', (pushback, expected) => {
    expect(judge(grpc, { code: 14, metadata: metadata(pushback) })).toMatchObject(expected);
    const headers = new Headers(pushback === undefined ? {} : { 'grpc-retry-pushback-ms': pushback });
    expect(judge(grpc, { code: 14, metadata: headers })).toMatchObject(expected);
  });

  test('small numbers of others are not known here', () => {
    expect(
      grpc.classify({ ok: false, error: new DOMException('x', 'NetworkError') }, () => 0),
    ).toBeUndefined();
    expect(judge(grpc, { code: 14 })).toBeUndefined();
    expect(judge(grpc, { code: '14', details: '' })).toBeUndefined();
    expect(judge(grpc, { code: 0, details: '' })).toBeUndefined();
    expect(judge(grpc, { code: 17, details: '' })).toBeUndefined();
  });
});

describe('aws', () => {
  const $metadata = (httpStatusCode: number) => ({ httpStatusCode });

  test.each([
    ...[
      'ThrottlingException',
      'Throttling',
      'ThrottledException',
      'RequestThrottledException',
      'EC2ThrottledException',
    ],
    ...[
      'ProvisionedThroughputExceededException',
      'RequestLimitExceeded',
      'SlowDown',
      'TooManyRequestsException',
    ],
    ...[
      'BandwidthLimitExceeded',
      'LimitExceededException',
      'PriorRequestNotComplete',
      'TransactionInProgressException',
    ],
  ])('%s is throttled, by name and by code', (name) => {
    expect(judge(aws, { name, $metadata: $metadata(400) })?.class).toBe('throttled');
    expect(judge(aws, { name: 'Error', Code: name, $metadata: $metadata(503) })?.class).toBe('throttled');
    expect(judge(aws, { code: name })?.class).toBe('throttled');
  });

  test.each([
    { name: 'RequestTimeout', $metadata: $metadata(400) },
    { name: 'TimeoutError' },
    { name: 'InternalServerError', $metadata: $metadata(500) },
    { name: 'ServiceUnavailable', $metadata: $metadata(503) },
    { name: 'Modelled', $retryable: {}, $metadata: $metadata(400) },
    { name: 'Modelled', $retryable: { throttling: false } },
  ])('%j is transient', (error) => {
    expect(judge(aws, error)?.class).toBe('transient');
  });

  test('the model and the status can say throttled', () => {
    expect(judge(aws, { name: 'Modelled', $retryable: { throttling: true } })?.class).toBe('throttled');
    expect(judge(aws, { name: 'Other', $metadata: $metadata(429) })?.class).toBe('throttled');
  });

  test('reads the hint of the response', () => {
    const error = {
      name: 'SlowDown',
      $metadata: $metadata(503),
      $response: { headers: { 'retry-after': '4' } },
    };
    expect(judge(aws, error)).toMatchObject({ class: 'throttled', retryAfterMs: 4_000 });
  });

  test('what the service answered otherwise is fatal, what is not its own is not known', () => {
    expect(judge(aws, { name: 'ValidationException', $metadata: $metadata(400) })?.class).toBe('fatal');
    expect(judge(aws, { name: 'AccessDenied', $metadata: $metadata(403) })?.class).toBe('fatal');
    expect(judge(aws, { name: 'CredentialsProviderError' })).toBeUndefined();
    expect(judge(aws, { name: 'Error', $metadata: {} })).toBeUndefined();
  });
});

describe('kafka', () => {
  test.each([
    [{ name: 'KafkaJSConnectionError', retriable: true, code: 'ECONNREFUSED' }, 'transient'],
    [{ name: 'KafkaJSProtocolError', retriable: true, type: 'LEADER_NOT_AVAILABLE', code: 5 }, 'transient'],
    [
      { name: 'KafkaJSProtocolError', retriable: false, type: 'TOPIC_AUTHORIZATION_FAILED', code: 29 },
      'fatal',
    ],
    [{ name: 'KafkaJSNonRetriableError', retriable: false }, 'fatal'],
    [
      { name: 'KafkaJSProtocolError', retriable: true, type: 'THROTTLING_QUOTA_EXCEEDED', code: 89 },
      'throttled',
    ],
    [{ origin: 'local', code: -195, isRetriable: false }, 'transient'],
    [{ origin: 'local', code: -185 }, 'transient'],
    [{ origin: 'local', code: -184 }, 'throttled'],
    [{ origin: 'kafka', code: 19 }, 'transient'],
    [{ origin: 'kafka', code: 10, isRetriable: false }, 'fatal'],
    [{ origin: 'local', code: -150, isRetriable: true }, 'transient'],
    [{ canRetry: true, code: 'PLT_KFK_RESPONSE' }, 'transient'],
    [{ canRetry: false }, 'fatal'],
  ])('%j is %s', (error, expected) => {
    expect(judge(kafka, error)?.class).toBe(expected);
  });

  test('a client that gave up is as good as what it gave up on', () => {
    const gaveUp = (retriable: boolean) => {
      const cause = { name: 'KafkaJSProtocolError', retriable };
      return judge(kafka, { name: 'KafkaJSNumberOfRetriesExceeded', retriable: false, cause })?.class;
    };
    expect(gaveUp(true)).toBe('transient');
    expect(gaveUp(false)).toBe('fatal');
    expect(judge(kafka, { name: 'KafkaJSNumberOfRetriesExceeded', retriable: false })).toBeUndefined();
  });

  test('numbers of others are not known here', () => {
    expect(judge(kafka, { code: 5 })).toBeUndefined();
    expect(judge(kafka, { retriable: 'yes' })).toBeUndefined();
  });
});

test('any: every error is transient, no value is', () => {
  expect(judge(any, {})).toEqual({ class: 'transient' });
  expect(any.classify({ ok: false, error: 'text' }, () => 0)).toBe('transient');
  expect(any.classify({ ok: true, value: new Error('x') }, () => 0)).toBeUndefined();
});

describe('hostile objects', () => {
  const keys = [
    ...[
      'code',
      'name',
      'message',
      'cause',
      'errors',
      'status',
      'statusCode',
      'headers',
      'response',
      'syscall',
      'socket',
    ],
    ...[
      'errno',
      'sqlState',
      'errcode',
      'metadata',
      'details',
      '$metadata',
      '$retryable',
      '$response',
      'retriable',
    ],
  ];
  const throwing = () => {
    throw new Error('hostile');
  };
  // Symbols are left to fast-check, which looks for its own.
  const get = (_: object, key: string | symbol) => (typeof key === 'symbol' ? undefined : throwing());
  const trap = new Proxy({}, { get, ownKeys: throwing, getOwnPropertyDescriptor: throwing });
  const { value: anyError } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.anything(),
      fc.constantFrom(
        trap,
        Symbol('x'),
        Object.create(null),
        503,
        429,
        '40001',
        'ECONNRESET',
        'fetch failed',
        14,
      ),
      fc.dictionary(fc.constantFrom(...keys), tie('value'), { noNullPrototype: false }),
      fc
        .constantFrom(...keys)
        .map((key) => Object.defineProperty({}, key, { get: throwing, enumerable: true })),
      fc.array(tie('value'), { maxLength: 3 }).map((errors) => new AggregateError(errors)),
    ),
  }));
  const classes = ['ok', 'transient', 'throttled', 'fatal', 'ignored'];

  test.each(packs.map((pack) => [pack.pack, pack] as const))(
    '%s never throws, and answers only what there is to answer',
    (_, pack) => {
      fc.assert(
        fc.property(anyError, fc.boolean(), (thing, ok) => {
          const outcome = ok ? ({ ok, value: thing } as const) : ({ ok, error: thing } as const);
          const judged = pack.classify(outcome, () => 0);
          if (judged === undefined) return;
          const { class: kind, retryAfterMs = 0 } = typeof judged === 'string' ? { class: judged } : judged;
          expect(classes).toContain(kind);
          expect(retryAfterMs >= 0 && retryAfterMs < Infinity).toBe(true);
          // An error is never taken for a success.
          if (!ok) expect(kind).not.toBe('ok');
          if (ok && pack.values !== true) expect.fail('it said that it judges no values');
        }),
        { numRuns: 1_000 },
      );
    },
  );

  test('never name two packs the same', () => {
    expect(new Set(packs.map(({ pack }) => pack)).size).toBe(packs.length);
  });
});
