import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { openSqlite } from '@holdfast/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../command.ts';
import { type RunningExample, startExample, temporaryFolder } from './start-example.ts';

interface OrdersApi extends RunningExample {
  readonly origin: string;
  readonly file: string;
}

async function startApi(name: string): Promise<OrdersApi> {
  const file = path.join(await temporaryFolder(), 'orders.db');
  const example = await startExample(name, { PORT: '0', ORDERS_FILE: file });
  const [, origin = ''] = await example.printed(/^orders are taken on (http:\/\/127\.0\.0\.1:\d+)$/m);
  return { ...example, origin, file };
}

function placeOrder(origin: string, key: string, item = 'book'): Promise<Response> {
  return fetch(`${origin}/orders`, {
    method: 'POST',
    body: JSON.stringify({ item }),
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
  });
}

async function statusesOf(responses: Promise<Response>[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const response of await Promise.all(responses)) {
    statuses.push(response.status);
    await response.text();
  }
  return statuses;
}

/** Each `$ curl` of a README, with the line that it shows as the answer. */
async function curlsOf(name: string): Promise<[command: string, answer: string][]> {
  const readme = await readFile(path.join(root, 'examples', name, 'README.md'), 'utf8');
  return [...readme.matchAll(/^\$ curl (.+)\n(.+)$/gm)].map(([, command = '', answer = '']) => [
    command,
    answer,
  ]);
}

/** Does what curl does with the options -X, -H and -d. */
function curl(command: string, origin: string): Promise<Response> {
  const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  const after = (flag: string) => words.flatMap((word, index) => (word === flag ? [words[index + 1]!] : []));
  const url = words.at(-1)!.replace('localhost:3000', origin);
  const headers = after('-H').map((header) => header.split(': ') as [string, string]);
  return fetch(url, { method: after('-X')[0] ?? 'GET', headers, body: after('-d')[0] ?? null });
}

/** Every framework's example of an orders API does the same, seen from outside. */
export function testOrdersApi(name: string): void {
  test('an order that is sent again with its key is placed once', async () => {
    const { origin, file } = await startApi(name);
    const first = await placeOrder(origin, 'a');
    const again = await placeOrder(origin, 'a');
    for (const answer of [first, again])
      expect([answer.status, answer.headers.get('location'), await answer.json()]).toEqual([
        201,
        '/orders/1',
        { id: 1, item: 'book' },
      ]);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    expect((await placeOrder(origin, 'a', 'lamp')).status).toBe(422);
    expect((await placeOrder(origin, 'b', 'lamp')).status).toBe(201);

    const engine = await openSqlite({ file });
    onTestFinished(() => engine.close());
    const rows = await engine.transaction((database) =>
      database.prepare('SELECT id, item FROM orders').all(),
    );
    expect(rows).toEqual([
      { id: 1, item: 'book' },
      { id: 2, item: 'lamp' },
    ]);
  });

  test('what the README asks for is answered as it shows', async () => {
    const { origin } = await startApi(name);
    const shown = await curlsOf(name);
    const answered: typeof shown = [];
    for (const [command] of shown) answered.push([command, await (await curl(command, origin)).text()]);
    expect(answered).toEqual(shown);
    expect(shown).toHaveLength(4);
  });

  test('a POST without a key, and one without an item, are refused', async () => {
    const { origin } = await startApi(name);
    const headers = { 'content-type': 'application/json' };
    const order = { method: 'POST', body: '{}', headers };
    const keyless = await fetch(`${origin}/orders`, order);
    expect([keyless.status, (await keyless.json()).type]).toEqual([
      400,
      expect.stringContaining('key-missing'),
    ]);
    const empty = await fetch(`${origin}/orders`, {
      ...order,
      headers: { ...headers, 'idempotency-key': 'a' },
    });
    expect([empty.status, await empty.json()]).toEqual([400, { error: 'item is missing' }]);
  });

  test('a client is limited to 100 requests a minute', async () => {
    const { origin } = await startApi(name);
    const statuses: number[] = [];
    for (let round = 0; round < 20; round++)
      statuses.push(...(await statusesOf(Array.from({ length: 10 }, () => fetch(`${origin}/orders`)))));
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    const refused = await fetch(`${origin}/orders`);
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  });

  test('more reports than the process can make are shed, and others are served', async () => {
    const { origin } = await startApi(name);
    const statuses = await statusesOf(Array.from({ length: 90 }, () => fetch(`${origin}/report`)));
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  });

  test('a request ends with the patience of its client', async () => {
    const { origin } = await startApi(name);
    const late = await fetch(`${origin}/report`, { headers: { holdfast: 'patience=100' } });
    expect(late.status).toBe(504);
    expect((await fetch(`${origin}/report`)).status).toBe(200);
  });

  test('on a signal it is not ready, finishes what it began, and ends', async () => {
    const { origin, signal, printed, ended } = await startApi(name);
    const probe = async () => (await fetch(`${origin}/readyz`)).status;
    expect([await probe(), (await fetch(`${origin}/livez`)).status]).toEqual([200, 200]);
    const running = fetch(`${origin}/report`);
    // The report has begun when a later request was answered.
    await fetch(`${origin}/livez`);
    signal('SIGTERM');
    await printed(/not ready any more/);
    expect(await probe()).toBe(503);
    expect((await running).status).toBe(200);
    expect(await ended).toBe(0);
    await printed(/closed/);
  });
}
