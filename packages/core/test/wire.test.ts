import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  fieldLengthMax,
  parseDictionary,
  type RequestFields,
  readRequest,
  readResponse,
  Token,
  writeRequest,
  writeResponse,
} from '../src/wire.ts';

const all = { patienceMs: 1500, attempt: 2, owner: true, priority: 'critical' } as const;

describe('the Holdfast header', () => {
  test('says patience, attempt, owner and priority', () => {
    expect(writeRequest(all)).toBe('patience=1500, attempt=2, owner=?1, priority=critical');
    expect(writeRequest({ patienceMs: 12.9 })).toBe('patience=12');
    expect(writeRequest({ patienceMs: -3 })).toBe('patience=0');
    expect(writeRequest({ patienceMs: Infinity })).toBeUndefined();
    expect(writeResponse({ retry: 'safe' })).toBe('retry=safe');
    expect(writeResponse({})).toBeUndefined();
  });

  test('reads what it wrote', () => {
    const fields = fc.record({
      patienceMs: fc.option(fc.nat(), { nil: undefined }),
      attempt: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: undefined }),
      owner: fc.option(fc.boolean(), { nil: undefined }),
      priority: fc.option(fc.constantFrom('critical', 'default', 'sheddable'), { nil: undefined }),
    });
    fc.assert(
      fc.property(fields, (said) => {
        const text = writeRequest(said as RequestFields);
        expect(readRequest({ holdfast: text })).toEqual(said);
        expect(readRequest(new Headers(text === undefined ? {} : { holdfast: text }))).toEqual(said);
      }),
    );
  });

  test.each(['never', 'safe', 'unknown'] as const)('reads retry=%s of a response', (retry) => {
    expect(readResponse({ holdfast: `retry=${retry}` })).toEqual({ retry });
  });

  test('leaves out single members that make no sense', () => {
    const holdfast = 'patience=-1, attempt=0, owner=yes, priority="critical", retry=maybe, patience-b=5';
    expect(readRequest({ holdfast })).toEqual({});
    expect(readResponse({ holdfast })).toEqual({});
    expect(readRequest({ holdfast: 'patience=1.5, attempt=3' })).toEqual({ attempt: 3 });
  });

  test('joins lines of the same name, and the last of a key wins', () => {
    expect(readRequest({ holdfast: ['patience=5, attempt=1', 'patience=7'] })).toEqual({
      patienceMs: 7,
      attempt: 1,
    });
  });

  test.each([
    'patience',
    'patience=',
    'patience=1,',
    ',patience=1',
    'patience=1 attempt=2',
    'Patience=1',
    'patience=1;',
    'patience=1,,attempt=2',
    'patience=(1 2)',
    'patience=1234567890123456',
    'patience="1',
    `patience=1, x=${'y'.repeat(fieldLengthMax)}`,
  ])('ignores all of %j', (holdfast) => {
    expect(readRequest({ holdfast })).toEqual({});
  });

  test('never throws, never hangs', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (holdfast) => {
        readRequest({ holdfast, 'grpc-timeout': holdfast });
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab=;, "\\?1:('), maxLength: 256 }), (holdfast) => {
        readRequest({ holdfast });
      }),
    );
  });
});

describe('a structured dictionary', () => {
  test('has numbers, booleans, strings and tokens; parameters are read over', () => {
    const parsed = parseDictionary('  a=1;q="x";r , b=?0,c="a\\"b", d=to/ken , e, f=-1.25, g=:aGk=:  ');
    expect([...(parsed ?? [])]).toEqual([
      ['a', 1],
      ['b', false],
      ['c', 'a"b'],
      ['d', new Token('to/ken')],
      ['e', true],
      ['f', -1.25],
      ['g', 'aGk='],
    ]);
    expect(parseDictionary('')).toEqual(new Map());
  });
});

describe('the patience of others', () => {
  test.each([
    ['grpc-timeout', '5S', 5000],
    ['grpc-timeout', '250m', 250],
    ['grpc-timeout', '2500u', 2],
    ['grpc-timeout', '1H', 3_600_000],
    ['grpc-timeout', '123456789S', undefined],
    ['grpc-timeout', '5s', undefined],
    ['x-envoy-expected-rq-timeout-ms', '1200', 1200],
    ['x-envoy-expected-rq-timeout-ms', '0', undefined],
    ['x-envoy-expected-rq-timeout-ms', 'soon', undefined],
  ])('%s: %s', (name, value, patienceMs) => {
    expect(readRequest({ [name]: value }).patienceMs).toBe(patienceMs);
  });

  test('is taken only where ours is absent', () => {
    expect(readRequest({ holdfast: 'patience=7', 'grpc-timeout': '5S' }).patienceMs).toBe(7);
    expect(readRequest({ holdfast: 'attempt=2', 'grpc-timeout': '5S' })).toEqual({
      patienceMs: 5000,
      attempt: 2,
    });
    const both = { 'grpc-timeout': '5S', 'x-envoy-expected-rq-timeout-ms': '9' };
    expect(readRequest(both).patienceMs).toBe(5000);
  });
});
