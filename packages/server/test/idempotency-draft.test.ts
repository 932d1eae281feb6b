import { memoryEngine } from '@holdfast/contracts/memory';
import { describe, expect, test } from 'vitest';
import { idempotency } from '../src/index.ts';
import { plain, reply } from './frameworks.ts';

interface Sent {
  readonly key?: string;
  readonly method?: string;
  readonly path?: string;
  readonly type?: string;
  readonly body?: string;
}

interface Case {
  readonly says: string;
  /** Sent before, to the end. */
  readonly before?: Sent;
  readonly sent: Sent;
  readonly status: number;
  readonly problem?: string;
  readonly replayed?: true;
  readonly executions: number;
}

const first: Sent = { key: '"8e03978e-40d5-43dd-bc93-6894a57f9324"' };

/** draft-ietf-httpapi-idempotency-key-header-07, section by section. */
const cases: readonly Case[] = [
  { says: '2.1 a string of a structured field is a key', sent: first, status: 201, executions: 1 },
  {
    says: '2.1 an unquoted key is taken as well',
    sent: { key: 'clkyoesmbgybucifusbbtdsbohtyuuwz' },
    status: 201,
    executions: 1,
  },
  {
    says: '2.1 both are the same key',
    before: { key: '"k"' },
    sent: { key: 'k' },
    status: 201,
    replayed: true,
    executions: 1,
  },
  {
    says: '2.1 an escaped quote is a quote',
    before: { key: '"a\\"b"' },
    sent: { key: '"a\\"b"' },
    status: 201,
    replayed: true,
    executions: 1,
  },
  {
    says: '2.2 another key is another request',
    before: { key: 'a' },
    sent: { key: 'b' },
    status: 201,
    executions: 2,
  },
  { says: '2.5 the first request is processed', sent: first, status: 201, executions: 1 },
  {
    says: '2.6 a duplicate gets the result of the first',
    before: first,
    sent: first,
    status: 201,
    replayed: true,
    executions: 1,
  },
  { says: '2.6 GET needs no key', sent: { method: 'GET' }, status: 201, executions: 1 },
  { says: '2.6 PUT needs no key', sent: { method: 'PUT', body: 'x' }, status: 201, executions: 1 },
  {
    says: '2.6 PATCH needs a key',
    sent: { method: 'PATCH' },
    status: 400,
    problem: 'key-missing',
    executions: 0,
  },
  {
    says: '2.7 without the key that is required: 400',
    sent: {},
    status: 400,
    problem: 'key-missing',
    executions: 0,
  },
  { says: '2.7 an empty key: 400', sent: { key: '""' }, status: 400, problem: 'key-invalid', executions: 0 },
  { says: '2.7 a number in quotes is a string', sent: { key: '"1"' }, status: 201, executions: 1 },
  {
    says: '2.7 the key with another body: 422',
    before: first,
    sent: { ...first, body: 'two' },
    status: 422,
    problem: 'key-reused',
    executions: 1,
  },
  {
    says: '2.7 the key with another type: 422',
    before: first,
    sent: { ...first, type: 'text/csv' },
    status: 422,
    problem: 'key-reused',
    executions: 1,
  },
  {
    says: '2.7 the key with another query: 422',
    before: first,
    sent: { ...first, path: '/orders?dry=1' },
    status: 422,
    problem: 'key-reused',
    executions: 1,
  },
  {
    says: 'the order of a query does not matter',
    before: { ...first, path: '/orders?a=1&b=2' },
    sent: { ...first, path: '/orders?b=2&a=1' },
    status: 201,
    replayed: true,
    executions: 1,
  },
  {
    says: 'a key of another method is another key',
    before: first,
    sent: { ...first, method: 'PATCH' },
    status: 201,
    executions: 2,
  },
];

describe('the draft', () => {
  test.each(cases)('$says', async ({ before, sent, status, problem, replayed, executions }) => {
    let executed = 0;
    const part = idempotency({ ledger: memoryEngine().ledger, scope: 'public' });
    await using server = await plain.serve([part], () => reply(201, `order ${++executed}`));
    const send = ({ key, method = 'POST', path = '/orders', type = 'text/plain', body = 'one' }: Sent) =>
      fetch(server.origin + path, {
        method,
        body: method === 'GET' ? null : body,
        headers: { 'content-type': type, ...(key !== undefined && { 'idempotency-key': key }) },
      });
    if (before) await (await send(before)).text();
    const answer = await send(sent);
    const text = await answer.text();
    expect(answer.status).toBe(status);
    expect(answer.headers.get('idempotent-replayed')).toBe(replayed ? 'true' : null);
    expect(executed).toBe(executions);
    if (problem !== undefined)
      expect(JSON.parse(text)).toMatchObject({ type: `urn:holdfast:problem:${problem}`, status });
    else expect(text).toBe(`order ${executed}`);
  });
});
