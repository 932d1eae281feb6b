import fc from 'fast-check';
import { expect, test } from 'vitest';
import { errorType } from '../src/index.ts';

const coded = (code: unknown, more: object = {}) => Object.assign(new Error('text'), { code }, more);

test.each([
  ['a status before a code', coded('UND_ERR_RESPONSE', { statusCode: 503 }), '503'],
  ['the status of a response', new Response('', { status: 429 }), '429'],
  [
    'the status of the response that an error has',
    coded('ERR_BAD_RESPONSE', { response: { status: 502 } }),
    '502',
  ],
  ['a code', coded('ECONNRESET'), 'ECONNRESET'],
  ['a code of SQL', coded('40001'), '40001'],
  ['a code of gRPC', coded(14), '14'],
  ['the code of a cause', new TypeError('fetch failed', { cause: coded('ECONNREFUSED') }), 'ECONNREFUSED'],
  ['the first code of several', new AggregateError([coded('ENETUNREACH'), coded('EPIPE')]), 'ENETUNREACH'],
  ['a name', Object.assign(new Error(), { name: 'ThrottlingException' }), 'ThrottlingException'],
  ['the name of a class', new RangeError('text'), 'RangeError'],
  ['a name and not an old number', new DOMException('text', 'AbortError'), 'AbortError'],
  ['the type of what is no object', 'text', 'string'],
  ['nothing', undefined, 'undefined'],
  ['a name that is a sentence', Object.assign(new Error(), { name: 'no name: hunter2!' }), 'Error'],
  ['a value that says nothing', { status: 'failed' }, 'other'],
])('is %s', (_, outcome, expected) => {
  expect(errorType(outcome)).toBe(expected);
});

test('survives getters that throw and causes that go in circles', () => {
  const hostile = {
    get code() {
      throw new Error('gotcha');
    },
  };
  expect(errorType(hostile)).toBe('other');
  const circle = new Error('text') as Error & { cause: unknown };
  circle.cause = circle;
  expect(errorType(circle)).toBe('Error');
});

test('is always short, and one word', () => {
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (name, code, cause) => {
      const given = Object.assign(Object.create(Error.prototype), {});
      for (const [key, value] of Object.entries({ name, code, cause }))
        Object.defineProperty(given, key, { value });
      expect(errorType(given)).toMatch(/^[\w.:-]{1,64}$/);
    }),
  );
});
