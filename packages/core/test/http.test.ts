import { describe, expect, test } from 'vitest';
import { http } from '../src/classify/http.ts';
import type { Judgement } from '../src/decide/outcome.ts';

const epochMs = () => Date.UTC(2026, 0, 1);
const returned = (value: unknown) => http.classify({ ok: true, value }, epochMs);
const thrown = (error: unknown) => http.classify({ ok: false, error }, epochMs);
const response = (status: number, headers: Record<string, string> = {}) =>
  new Response(null, { status: status < 200 ? 200 : status, headers });
const classOf = (judged: unknown) => (judged as Judgement | undefined)?.class ?? judged;

describe('status', () => {
  test.each([
    [[200, 201, 204, 206, 301, 304, 307], 'ok'],
    [[408, 425, 500, 502, 503, 504, 520, 522, 524, 599], 'transient'],
    [[429, 529], 'throttled'],
    [[400, 401, 403, 404, 405, 409, 410, 412, 413, 418, 422, 423, 428, 431, 451], 'fatal'],
    [[501, 505, 506, 507, 508, 510, 511], 'fatal'],
  ])('%j is %s', (statuses, expected) => {
    for (const status of statuses)
      expect([status, classOf(returned(response(status)))]).toEqual([status, expected]);
  });

  test('a 503 that says when to come back is full, not broken', () => {
    expect(returned(response(503, { 'retry-after': '3' }))).toMatchObject({
      class: 'throttled',
      retryAfterMs: 3_000,
    });
    expect(returned(response(503, { 'retry-after': 'soon' }))).toMatchObject({
      class: 'transient',
      unreadableHint: 'retry-after: soon',
    });
  });

  test('a reset counts on a 429', () => {
    const headers = { 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '9' };
    expect(returned(response(429, headers))).toMatchObject({ class: 'throttled', retryAfterMs: 9_000 });
    expect(returned(response(500, headers))).toMatchObject({ class: 'transient', retryAfterMs: undefined });
  });

  test('a date is counted from the clock that was given', () => {
    const judged = returned(response(503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' }));
    expect(judged).toMatchObject({ retryAfterMs: 9_000 });
  });
});

describe('Holdfast: retry=', () => {
  test.each([
    ['retry=never', { retryNever: true, unprocessed: false }],
    ['retry=safe', { retryNever: false, unprocessed: true }],
    ['patience=5, retry=safe', { retryNever: false, unprocessed: true }],
    ['retry=unknown', { retryNever: false, unprocessed: false }],
    ['retry=perhaps', { retryNever: false, unprocessed: false }],
    ['no-retry-here', { retryNever: false, unprocessed: false }],
  ])('%s', (said, expected) => {
    expect(returned(response(503, { holdfast: said }))).toMatchObject({ class: 'transient', ...expected });
  });

  test('no failure by itself is proof that nothing was done', () => {
    for (const status of [408, 425, 429, 500, 502, 503, 504]) {
      expect(returned(response(status))).toMatchObject({ unprocessed: false });
    }
  });
});

describe('shapes', () => {
  const headers = { 'retry-after': '2' };
  test.each([
    ['a fetch Response', response(503, headers)],
    ['an undici response', { statusCode: 503, headers }],
    ['an axios response', { status: 503, headers, data: '' }],
    ['raw headers', { statusCode: 503, headers: ['Retry-After', '2'] }],
  ])('%s, returned', (_, value) => {
    expect(returned(value)).toMatchObject({ class: 'throttled', retryAfterMs: 2_000 });
  });

  test.each([
    ['a thrown Response', response(503, headers)],
    ['an axios error', { status: 503, code: 'ERR_BAD_RESPONSE', response: { status: 503, headers } }],
    ['a got error', { response: { statusCode: 503, headers } }],
    ['a ky error', { response: response(503, headers) }],
    ['an error with status and headers', { status: 503, headers: new Headers(headers) }],
    ['a response without a status beside one', { statusCode: 503, response: { headers } }],
    ['the cause of another error', new Error('outer', { cause: { response: response(503, headers) } })],
  ])('%s, thrown', (_, error) => {
    expect(thrown(error)).toMatchObject({ class: 'throttled', retryAfterMs: 2_000 });
  });

  test('a status alone is enough for an error', () => {
    expect(classOf(thrown(Object.assign(new Error('x'), { status: 404 })))).toBe('fatal');
    expect(classOf(thrown(Object.assign(new Error('x'), { statusCode: 502 })))).toBe('transient');
  });

  test.each([
    42,
    'text',
    null,
    undefined,
    { status: 500 },
    { status: 'active', headers: {} },
    { headers: {} },
    [500],
  ])('a value of %j is no response', (value) => {
    expect(returned(value)).toBeUndefined();
  });

  test.each([
    new Error('plain'),
    { status: 0 },
    { status: 99 },
    { status: 600 },
    { status: NaN },
    { status: {} },
    { code: 503 },
    'x',
    null,
  ])('an error of %j is not known here', (error) => {
    expect(thrown(error)).toBeUndefined();
  });

  test('an error about a good response is not known here', () => {
    expect(thrown(Object.assign(new Error('Unexpected token'), { response: response(200) }))).toBeUndefined();
  });
});
