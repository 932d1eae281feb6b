import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { policy as makePolicy, type Wait } from 'holdfast';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { createFetch, retryInterceptor } from '../src/index.ts';

/** The first answer to each path is a 503, the second a 200; they come in pairs, so that retries meet in the bulkhead. */
async function flickering(): Promise<string> {
  const seen = new Set<string>();
  const server = createServer((incoming, response) => {
    response.statusCode = seen.has(incoming.url!) ? 200 : 503;
    seen.add(incoming.url!);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const policy = { backoff: false, breaker: false, bulkhead: { concurrent: 1, queue: 10 } } as const;

test('a retry without a delay that queues in a bulkhead is no wait: not for fetch', async () => {
  const url = await flickering();
  const waits: Wait[] = [];
  const fetch = createFetch({ policy, onWait: (wait) => waits.push(wait) });
  const statuses = await Promise.all(
    ['/a', '/b', '/c'].map(async (path) => (await fetch(url + path)).status),
  );
  expect([statuses, waits]).toEqual([[200, 200, 200], []]);
});

test('nor for the interceptor', async () => {
  const url = await flickering();
  const waits: Wait[] = [];
  const agent = new Agent();
  onTestFinished(() => agent.close());
  const dispatcher = agent.compose(
    retryInterceptor(makePolicy(policy), { onWait: (wait) => waits.push(wait) }),
  );
  const statuses = await Promise.all(
    ['/a', '/b', '/c'].map(async (path) => {
      const { statusCode, body } = await request(url + path, { dispatcher });
      await body.dump();
      return statusCode;
    }),
  );
  expect([statuses, waits]).toEqual([[200, 200, 200], []]);
});
