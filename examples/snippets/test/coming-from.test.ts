import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as axiosRetryAfter from '../src/coming-from/axios-retry-after.ts';
import * as axiosRetryBefore from '../src/coming-from/axios-retry-before.ts';
import * as cockatielAfter from '../src/coming-from/cockatiel-after.ts';
import * as cockatielBefore from '../src/coming-from/cockatiel-before.ts';
import * as opossumAfter from '../src/coming-from/opossum-after.ts';
import * as opossumBefore from '../src/coming-from/opossum-before.ts';
import * as pRetryAfter from '../src/coming-from/p-retry-after.ts';
import * as pRetryBefore from '../src/coming-from/p-retry-before.ts';

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
  expect(files.length).toBe(8);
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
