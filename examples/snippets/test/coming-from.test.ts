import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import * as axiosRetryAfter from '../src/coming-from/axios-retry-after.ts';
import * as axiosRetryBefore from '../src/coming-from/axios-retry-before.ts';
import * as bullmqAfter from '../src/coming-from/bullmq-after.ts';
import * as bullmqBefore from '../src/coming-from/bullmq-before.ts';
import * as cockatielAfter from '../src/coming-from/cockatiel-after.ts';
import * as cockatielBefore from '../src/coming-from/cockatiel-before.ts';
import * as opossumAfter from '../src/coming-from/opossum-after.ts';
import * as opossumBefore from '../src/coming-from/opossum-before.ts';
import * as pRetryAfter from '../src/coming-from/p-retry-after.ts';
import * as pRetryBefore from '../src/coming-from/p-retry-before.ts';
import * as pgBossAfter from '../src/coming-from/pg-boss-after.ts';
import * as pgBossBefore from '../src/coming-from/pg-boss-before.ts';

const [redis, postgres] = await Promise.all([service('redis'), service('postgres')]);

const root = path.join(import.meta.dirname, '../../..');

/** A server that answers with these statuses, one after the other, and then with 200. */
async function server(...statuses: number[]) {
  const asked = { calls: 0 };
  const made = createServer((_, response) => {
    response.statusCode = statuses[asked.calls++] ?? 200;
    response.setHeader('content-type', 'application/json');
    response.end('{"price":4}');
  }).listen(0, '127.0.0.1');
  await once(made, 'listening');
  onTestFinished(() => {
    made.closeAllConnections();
    made.close();
  });
  return { asked, url: `http://127.0.0.1:${(made.address() as AddressInfo).port}/` };
}

test('the page shows each program as it is run', async () => {
  const page = await readFile(path.join(root, 'docs/coming-from.md'), 'utf8');
  const folder = path.join(root, 'examples/snippets/src/coming-from');
  const files = await readdir(folder);
  expect(files.length).toBe(12);
  for (const file of files) {
    expect(page).toContain(`\`\`\`ts\n${await readFile(path.join(folder, file), 'utf8')}\`\`\`\n`);
  }
});

describe.each([
  ['before', pRetryBefore],
  ['after', pRetryAfter],
])('from p-retry, %s', (_, { price }) => {
  test('two failures are hidden', async () => {
    const { url, asked } = await server(503, 503);
    expect([await price(url), asked.calls]).toEqual([{ price: 4 }, 3]);
  });

  test('what does not exist is not asked for again', async () => {
    const { url, asked } = await server(404, 404);
    await expect(price(url)).rejects.toThrow('no such product');
    expect(asked.calls).toBe(1);
  });
});

describe.each([
  ['before', cockatielBefore],
  ['after', cockatielAfter],
])('from cockatiel, %s', (_, { stock }) => {
  test('two failures are hidden', async () => {
    let calls = 0;
    const call = async () => {
      if (++calls < 3) throw new Error('busy');
      return 7;
    };
    expect([await stock(call), calls]).toEqual([7, 3]);
  });

  test('five failures in a row open the breaker: the next call is refused without being made', async () => {
    let calls = 0;
    const call = async () => {
      calls++;
      throw new Error('down');
    };
    for (let n = 0; n < 3; n++) await stock(call).catch(() => {});
    const before = calls;
    await expect(stock(call)).rejects.toThrow(/breaker is open/i);
    expect(calls).toBe(before);
  });
});

describe.each([
  ['before', opossumBefore],
  ['after', opossumAfter],
])('from opossum, %s', (_, { guarded }) => {
  test('failures are replaced, and after half of the calls have failed none is made', async () => {
    let calls = 0;
    const rate = guarded(async () => {
      calls++;
      throw Object.assign(new Error('down'), { code: 'ECONNRESET' });
    });
    const rates = [];
    for (let n = 0; n < 8; n++) rates.push(await rate('EUR'));
    expect(rates).toEqual(Array(8).fill(1));
    expect(calls).toBeLessThanOrEqual(5);
  });
});

describe.each([
  ['before', axiosRetryBefore],
  ['after', axiosRetryAfter],
])('from axios-retry, %s', (_, { order }) => {
  test('two failures are hidden', async () => {
    const { url, asked } = await server(503, 502);
    expect([await order(url), asked.calls]).toEqual([{ price: 4 }, 3]);
  });

  test('a refusal is thrown', async () => {
    const { url, asked } = await server(400);
    await expect(order(url)).rejects.toThrow('400');
    expect(asked.calls).toBe(1);
  });
});

const unique = () => `mails-${randomUUID()}`;

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-coming-from-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return path.join(folder, 'mails.db');
}

/** A mail server that refuses the first two mails to each address, and all to `down@…`. It knows who got how many. */
function mailServer() {
  const attempts: Record<string, number> = {};
  const sent: string[] = [];
  const send = async (to: string) => {
    attempts[to] = (attempts[to] ?? 0) + 1;
    if (attempts[to] < 3 || to.startsWith('down@')) throw new Error('the mail server is busy');
    sent.push(to);
  };
  return { attempts, sent, send };
}

describe.skipIf(redis.missing).each([
  ['before', bullmqBefore.mails],
  [
    'after',
    async (...[url, name, send]: Parameters<typeof bullmqBefore.mails>) =>
      bullmqAfter.mails(url, name, send, await temporaryFile()),
  ],
])(titled('from BullMQ, %s', redis), (_, mails) => {
  test('two failures are hidden, an id is sent once, and what cannot be sent is not tried', async () => {
    const { attempts, sent, send } = mailServer();
    const queue = await mails(redis.missing === undefined ? redis.url : '', unique(), send);
    await queue.enqueue('ann@shop');
    await queue.enqueue('ann@shop');
    await queue.enqueue('nobody');
    await expect.poll(() => queue.failed(), { timeout: 10_000 }).toBe(1);
    await expect.poll(() => sent, { timeout: 10_000 }).toEqual(['ann@shop']);
    await queue.stop();
    expect(attempts).toEqual({ 'ann@shop': 3 });
  });
});

describe.skipIf(postgres.missing).each([
  ['before', pgBossBefore.mails],
  ['after', pgBossAfter.mails],
])(titled('from pg-boss, %s', postgres), (_, mails) => {
  test('two failures are hidden, and after three a mail is kept for a person', async () => {
    const { attempts, sent, send } = mailServer();
    const queue = await mails(postgres.missing === undefined ? postgres.url : '', unique(), send);
    await queue.enqueue('ann@shop');
    await queue.enqueue('down@shop');
    await expect.poll(() => queue.failed(), { timeout: 15_000 }).toBe(1);
    await expect.poll(() => sent, { timeout: 15_000 }).toEqual(['ann@shop']);
    await queue.stop();
    expect(attempts).toEqual({ 'ann@shop': 3, 'down@shop': 3 });
  });
});
