import path from 'node:path';
import { lintGateway, readGatewayFile } from '@holdfast/gateway';
import { expect, test } from 'vitest';
import { startExample, temporaryFolder } from '../../../scripts/examples/start-example.ts';

async function start() {
  const KEYS_FILE = path.join(await temporaryFolder(), 'keys.db');
  const example = await startExample('legacy-gateway', {
    LEGACY_PORT: '0',
    GATEWAY_PORT: '0',
    ADMIN_PORT: '0',
    KEYS_FILE,
  });
  const [, old = ''] = await example.printed(/^the old server is on (\S+)$/m);
  const [, gateway = ''] = await example.printed(/^the gateway is on (\S+)$/m);
  const counts = async (): Promise<{ requests: number; payments: number }> =>
    (await fetch(`${old}/counts`)).json();
  return { ...example, old, gateway, counts };
}

async function statusOf(url: string, init?: RequestInit): Promise<number> {
  const response = await fetch(url, init);
  await response.text();
  return response.status;
}

test('every invoice is there, although the old server fails every tenth request', async () => {
  const { gateway, counts } = await start();
  for (let invoice = 1; invoice <= 30; invoice++) {
    const response = await fetch(`${gateway}/invoices/${invoice}`);
    expect([response.status, await response.text()]).toEqual([200, `invoice ${invoice}\n`]);
  }
  // 30 requests, and another for each of the three that failed.
  expect((await counts()).requests).toBe(33);
});

test('a payment that is sent again with its key is made once', async () => {
  const { gateway, counts } = await start();
  const headers = { authorization: 'Bearer ann', 'idempotency-key': 'a' };
  const pay = () => fetch(`${gateway}/payments`, { method: 'POST', body: '12 EUR', headers });
  expect(await (await pay()).text()).toBe('payment 1\n');
  const again = await pay();
  expect([await again.text(), again.headers.get('idempotent-replayed')]).toEqual(['payment 1\n', 'true']);
  expect((await counts()).payments).toBe(1);
  const { authorization } = headers;
  expect(await statusOf(`${gateway}/payments`, { method: 'POST', headers: { authorization } })).toBe(400);
});

test('a request that the old server never answers ends with 504', async () => {
  const { gateway } = await start();
  expect(await statusOf(`${gateway}/export`)).toBe(504);
});

test('a sick server is left alone, and gets requests again when it is well', async () => {
  const { old, gateway, counts } = await start();
  await statusOf(`${old}/sick`, { method: 'PUT' });
  await expect.poll(() => statusOf(`${gateway}/invoices/1`)).toBe(503);
  const before = await counts();
  expect(await statusOf(`${gateway}/invoices/1`)).toBe(503);
  expect(await counts()).toEqual(before);
  await statusOf(`${old}/well`, { method: 'PUT' });
  await expect.poll(() => statusOf(`${gateway}/invoices/1`), { timeout: 15_000 }).toBe(200);
});

test('a client that asks too much is refused before the old server is', async () => {
  const { gateway, counts } = await start();
  const statuses = await Promise.all(Array.from({ length: 400 }, () => statusOf(`${gateway}/invoices/1`)));
  expect(statuses).toContain(429);
  expect(statuses).toContain(200);
  expect((await counts()).requests).toBeLessThan(400);
});

test('it ends on a signal, and the file has no finding', async () => {
  const { signal, printed, ended } = await start();
  signal('SIGTERM');
  await printed(/^closed$/m);
  expect(await ended).toBe(0);
  const file = path.join(import.meta.dirname, '../gateway.yaml');
  expect(lintGateway(readGatewayFile(file)).filter(({ severity }) => severity !== 'advice')).toEqual([]);
});
