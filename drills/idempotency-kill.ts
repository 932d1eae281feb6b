import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import type { KilledEngine, Place } from './idempotency/place.ts';

const engines: readonly KilledEngine[] = ['sqlite', 'postgres', 'redis'];
const LEASE_MS = 300;
/** How long a client asks again for one answer. */
const PATIENCE_MS = 20_000;

/** Where the service dies. `by chance`: at a random time after the request was sent. */
const deaths = [
  'before the effect',
  'in the transaction',
  'after the effect',
  'after the answer',
  'by chance',
] as const;
const CHANCE_MS = 20;

/** The service is killed in the middle of an order, again and again, and each order is sent until it has an answer. */
export async function drill({ times = 200, engine }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const chosen = engine === undefined ? engines : engines.filter((each) => each === engine);
  if (chosen.length === 0) throw new Error(`--engine wants one of ${engines.join(', ')}, got "${engine}".`);
  const counts: Record<string, number> = {};
  for (const each of chosen) {
    for (const [what, count] of Object.entries(await kills(each, times))) counts[`${each} ${what}`] = count;
  }
  return counts;
}

export async function kills(engine: KilledEngine, times: number): Promise<Record<string, number>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-kill-'));
  const server = engine === 'sqlite' ? undefined : await ownService(engine);
  if (server?.missing !== undefined) throw new Error(`The drill needs ${engine}: ${server.missing}.`);
  const place: Place = {
    engine,
    address: server?.url ?? path.join(folder, 'orders.db'),
    effects: path.join(folder, 'effects'),
    leaseMs: LEASE_MS,
  };
  await prepare(place);
  const services = [start(place), start(place)];
  const counts = {
    orders: times,
    killed: 0,
    answered: 0,
    replayed: 0,
    unknown: 0,
    effects: 0,
    repeatedEffects: 0,
  };
  const answered = new Set<string>();
  try {
    for (let time = 0; time < times; time++) {
      const order = `order-${time}`;
      const death = deaths[time % deaths.length]!;
      const { child, port } = await services.shift()!;
      const gone = once(child, 'exit');
      const first = send(await port, order, death).catch(() => undefined);
      if (death === 'by chance') await pause(Math.random() * CHANCE_MS);
      // Processes with a point die there by themselves; one that did not get that far is killed.
      if (death === 'by chance') child.kill('SIGKILL');
      await Promise.race([gone, first.then(() => pause(100))]);
      child.kill('SIGKILL');
      await gone;
      counts.killed++;

      services.push(start(place));
      const { port: next } = await services[0]!;
      const outcome = await untilAnswered(await next, order);
      counts[outcome]++;
      if (outcome !== 'unknown') answered.add(order);
    }
    const effects = await effectsIn(place);
    counts.effects = effects.length;
    counts.repeatedEffects = effects.length - new Set(effects).size;
    must(counts.repeatedEffects === 0, `no order is executed twice, ${counts.repeatedEffects} were`);
    for (const order of answered)
      must(effects.includes(order), `what is answered was done, ${order} was not`);
    if (engine !== 'redis') {
      must(counts.unknown === 0, `with a transaction every outcome is known, ${counts.unknown} were not`);
      must(effects.length === times, `every order is executed, ${times - effects.length} were not`);
    }
    return counts;
  } finally {
    for (const { child } of await Promise.all(services)) child.kill('SIGKILL');
    await server?.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function start(place: Place): Promise<{ child: ChildProcess; port: Promise<number> }> {
  const child = fork(
    path.join(import.meta.dirname, 'idempotency', 'service-process.ts'),
    [JSON.stringify(place)],
    {
      execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    },
  );
  return { child, port: once(child, 'message').then(([port]) => port as number) };
}

function send(port: number, order: string, death = 'never'): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    body: order,
    headers: { 'idempotency-key': order, 'x-order': order, 'x-die': death },
  });
}

/** Repeats the order as a client would, as long as it may. */
async function untilAnswered(port: number, order: string): Promise<'answered' | 'replayed' | 'unknown'> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await pause(50)) {
    const answer = await send(port, order);
    const text = await answer.text();
    if (answer.status === 201) {
      must(text === `ordered ${order}`, `the answer is that of the order, got ${text}`);
      return answer.headers.has('idempotent-replayed') ? 'replayed' : 'answered';
    }
    const { type } = JSON.parse(text) as { type: string };
    if (type.endsWith('outcome-unknown')) {
      must(answer.headers.get('holdfast') === 'retry=never', 'who must not repeat is told so');
      return 'unknown';
    }
    must(type.endsWith('in-progress') || answer.status === 503, `it goes on or is told why, got ${text}`);
  }
  throw new Error(`${order} was not answered in ${PATIENCE_MS} ms.`);
}

async function prepare({ engine, address, effects }: Place): Promise<void> {
  const table = 'CREATE TABLE effect (order_id text NOT NULL)';
  await writeFile(effects, '');
  if (engine === 'sqlite') {
    const database = new DatabaseSync(address);
    database.exec(`PRAGMA journal_mode = WAL; ${table}`);
    database.close();
  }
  if (engine === 'postgres') await inPostgres(address, table);
}

async function effectsIn({ engine, address, effects }: Place): Promise<string[]> {
  if (engine === 'redis') return (await readFile(effects, 'utf8')).split('\n').filter((line) => line !== '');
  const all = 'SELECT order_id FROM effect';
  const rows =
    engine === 'postgres' ? await inPostgres(address, all) : new DatabaseSync(address).prepare(all).all();
  return rows.map((row) => String((row as { order_id: unknown }).order_id));
}

async function inPostgres(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`Being killed promised that ${what}.`);
}
