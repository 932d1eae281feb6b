import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chaosFetch, chaosHandler, chaosProxy } from '@holdfast/chaos';
import { createFetch } from '@holdfast/http';
import { policy, storyOf } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { expect, test } from 'vitest';

test('a report is sent again after an hour, because the bank says so', async () => {
  const clock = virtualClock();
  const nightly = policy({ patience: '3h', respectServer: { cap: '2h' } }, { clock });
  const send = chaosFetch(
    { faults: [{ kind: 'status', status: 503, retryAfter: '1h', first: 1 }] },
    { fetch: async () => new Response('sent'), clock },
  );
  const running = nightly.run(() => send('https://bank.example/report'));
  await clock.advance('59m');
  expect(nightly.counters.attempts).toBe(1);
  await clock.advance('2h');
  expect(await (await running).text()).toBe('sent');
});

test('an order that comes twice is charged once', async () => {
  const charged = new Set<string>();
  const charge = async ({ key }: { key: string }) => void charged.add(key);
  const twice = chaosHandler({ faults: [{ kind: 'duplicate' }] }, charge);
  await twice({ key: 'order-1' });
  expect([twice.chaos.counts.byKind.duplicate, charged.size]).toEqual([1, 1]);
});

test('a price is read when connections work again', async () => {
  const server = createServer((_, response) => response.end('12 EUR')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using proxy = await chaosProxy({ upstream, spec: { faults: [{ kind: 'reset' }] } });
  const shopFetch = createFetch({ policy: { attempts: 2, backoff: { base: '1ms' } } });
  const url = `http://127.0.0.1:${proxy.port}/prices/lamp`;

  const error = await shopFetch(url).catch((given: unknown) => given);
  expect(storyOf(error)?.stop).toBe('attempts_exhausted');
  await proxy.set({ faults: [] });
  expect(await (await shopFetch(url)).text()).toBe('12 EUR');
  server.close();
});
