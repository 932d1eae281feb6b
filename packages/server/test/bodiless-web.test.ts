import { memoryEngine } from '@holdfast/contracts/memory';
import { expect, test } from 'vitest';
import { guardWeb, idempotency } from '../src/index.ts';

// Without a server: that of Hono replaces `Response` by one that refuses nothing.
test.each([204, 205, 304])('a %i is replayed where Response is the platform’s own', async (status) => {
  const guarded = guardWeb(
    [idempotency({ ledger: memoryEngine().ledger, scope: 'public' })],
    () => new Response(null, { status }),
  );
  const ask = async () => {
    const headers = { 'idempotency-key': 'k' };
    const answer = await guarded(new Request('http://a/', { method: 'POST', body: 'x', headers }));
    return [answer.status, answer.headers.get('idempotent-replayed')];
  };
  expect([await ask(), await ask()]).toEqual([
    [status, null],
    [status, 'true'],
  ]);
});
