import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Broker } from '@holdfast/contracts';
import pg from 'pg';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import type { OwnServer } from '../scripts/services/start-service.ts';
import { flows } from './events/flow.ts';
import { smallDisk } from './events/small-disk.ts';
import { type Counts, trial } from './events-kill.ts';

type EngineName = 'sqlite' | 'postgres';

const PAYLOAD = 'x'.repeat(10_000);
const FULL = { sqlite: 'HOLDFAST_SQLITE_FULL', postgres: 'HOLDFAST_POSTGRES_FULL' };
const UNAVAILABLE = 'HOLDFAST_POSTGRES_UNAVAILABLE';
/** How long events are published and handled on a full disk. */
const FULL_MS = 1500;
/** An empty server is 39 MB, 16 of them its log. */
const DISK = { sqlite: '6m', postgres: '72m' };
const GROWN = '64m';

/** The disk is filled while events are published and handled, and after a while there is space again. */
export async function drill({
  times = 1,
  engine = 'sqlite',
}: Partial<DrillOptions>): Promise<Record<string, number>> {
  if (engine !== 'sqlite' && engine !== 'postgres')
    throw new Error(`--engine wants sqlite or postgres, got "${engine}".`);
  const sums: Record<string, number> = {};
  for (let time = 0; time < times; time++) {
    const { kills: _, ...counts } = await full(engine);
    const wrong = counts.lost + counts.repeated + counts.outOfOrder;
    must(wrong === 0, `nothing is lost, repeated or out of order, got ${JSON.stringify(counts)}`);
    for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
  }
  return sums;
}

/** One time. It needs to be root, for a disk of its own that is small. */
export function full(engine: EngineName): Promise<Counts & Record<string, number>> {
  return engine === 'sqlite' ? fullFile() : fullServer();
}

async function fullFile(): Promise<Counts & Record<string, number>> {
  const disk = await smallDisk(DISK.sqlite);
  try {
    const file = path.join(disk.folder, 'events.db');
    return await trial('sqlite', file, async ({ log, broker, publisher, worker }) => {
      worker();
      const refusals = publisher();
      must(await flows(log), 'events flow to begin with');
      await publishUntilRefused(broker, FULL.sqlite);
      await pause(FULL_MS);
      disk.grow(GROWN);
      const told = countCodes(refusals, [FULL.sqlite]);
      must(await flows(log), 'events flow again when there is space');
      return { refused: told[FULL.sqlite]! };
    });
  } finally {
    await disk.remove();
  }
}

/** At first only the tables cannot grow; then the log of the server cannot either, which is its end. */
async function fullServer(): Promise<Counts & Record<string, number>> {
  const disk = await smallDisk(DISK.postgres);
  const settings = { min_wal_size: '32MB', max_wal_size: '32MB', max_connections: '40' };
  const server = await ownService('postgres', { parent: disk.folder, settings });
  try {
    if (server.missing !== undefined) throw new Error(`The drill needs PostgreSQL: ${server.missing}.`);
    return await trial('postgres', server.url, async ({ log, broker, publisher, worker }) => {
      worker();
      const refusals = publisher();
      must(await flows(log), 'events flow to begin with');
      await disk.fill();
      await publishUntilRefused(broker, FULL.postgres);
      await pause(FULL_MS);
      await useUpLog(server.url);
      await pause(FULL_MS);
      await disk.free();
      const told = countCodes(refusals, [FULL.postgres, UNAVAILABLE]);
      // As an operator would.
      const hasEnded = !isAlive(server);
      if (hasEnded) await server.start();
      must(await flows(log), 'events flow again when there is space');
      return {
        refused: told[FULL.postgres]!,
        unavailable: told[UNAVAILABLE]!,
        serverEnds: hasEnded ? 1 : 0,
      };
    });
  } finally {
    if (server.missing === undefined) await server.stop();
    await disk.remove();
  }
}

/** How often each was told to the publisher; nothing else may have been, and each has to have been. */
function countCodes(told: readonly string[], expected: readonly string[]): Record<string, number> {
  for (const code of told) must(expected.includes(code), `it is told as what it is, got ${code}`);
  const counts = Object.fromEntries(
    expected.map((code) => [code, told.filter((each) => each === code).length]),
  );
  for (const [code, count] of Object.entries(counts)) must(count > 0, `it is told as ${code}`);
  return counts;
}

async function publishUntilRefused(broker: Broker, expected: string): Promise<void> {
  await broker.declare('ballast');
  for (;;) {
    try {
      await broker.publish('ballast', [{ payload: PAYLOAD, delayMs: 1e9 }]);
    } catch (error) {
      const { code } = error as { code?: string };
      must(code === expected, `a full disk is told as what it is, got ${error}`);
      return;
    }
  }
}

/** Has the server begin new files of its log until it cannot. */
async function useUpLog(url: string): Promise<void> {
  const client = new pg.Client(url);
  client.on('error', () => {}); // the query rejects with it
  await client.connect();
  const failure = await switchLog(client).catch((error: Error) => error);
  must(/no space|terminated/i.test(failure.message), `the log cannot grow for ever, got ${failure}`);
}

async function switchLog(client: pg.Client): Promise<never> {
  for (;;) {
    // With nothing in it the file that is there would do.
    await client.query(`SELECT pg_logical_emit_message(true, 'drill', 'full'); SELECT pg_switch_wal()`);
  }
}

function isAlive({ pid }: OwnServer): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A full disk promised that ${what}.`);
}
