import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { defaultReplay, type Engine, timeOrderedId } from '@holdfast/contracts';
import { consumer } from '@holdfast/events';
import { systemClock } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import { openPlace, type Place } from './events/place.ts';
import { GROUPS, parkedEvent, REPLAYED } from './parked/parked-event.ts';
import type { ReplayerReport } from './parked/replayer-process.ts';

const PARKED = 1_000_000;
const PUT_AT_ONCE = 1000;
/** What a process may hold beyond what it begins with, whatever is parked. */
const HEAP_MAX_MEGABYTES = 120;

type FilledEngine = Pick<Required<Engine>, 'broker' | 'triage'>;

/** Many events are parked: they can be listed, grouped, searched and replayed, and a replayer may be killed half-way. */
export async function drill({
  times = PARKED,
  engine: name = 'sqlite',
}: Partial<DrillOptions>): Promise<Record<string, number>> {
  if (name !== 'sqlite' && name !== 'postgres')
    throw new Error(`--engine wants sqlite or postgres, got "${name}".`);
  const server = name === 'postgres' ? await ownService('postgres') : undefined;
  if (server?.missing !== undefined) throw new Error(`The drill needs ${name}: ${server.missing}.`);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-parked-'));
  const place: Place = { engine: name, address: server?.url ?? path.join(folder, 'parked.db'), record: '' };
  try {
    return await trial(place, times);
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true });
  }
}

async function trial(place: Place, times: number): Promise<Record<string, number>> {
  const engine = await openPlace(place);
  try {
    const replayed = Math.ceil(times * REPLAYED);
    const putMs = await timed(() => fill(engine, times));
    const before = heapMegabytes();
    const looks = await look(engine, times);
    const replay = await killedHalfWay(engine, place, replayed);
    const heldMegabytes = Math.max(0, heapMegabytes() - before);
    must(heldMegabytes < HEAP_MAX_MEGABYTES, `memory is bounded, ${heldMegabytes} MB more are held`);
    return { parked: times, putMs, ...looks, ...replay, heldMegabytes: Math.round(heldMegabytes) };
  } finally {
    await engine.close();
  }
}

export async function fill({ broker, triage }: FilledEngine, count: number): Promise<void> {
  const newId = timeOrderedId(systemClock, seededRandom('parked'));
  await broker.declare('orders');
  for (let from = 0; from < count; from += PUT_AT_ONCE) {
    const batch = Array.from({ length: Math.min(PUT_AT_ONCE, count - from) }, (_, index) =>
      parkedEvent(newId(), from + index),
    );
    await triage.put(batch);
  }
}

/** What a person does first. */
async function look({ triage }: FilledEngine, parked: number): Promise<Record<string, number>> {
  let cursor: string | undefined;
  let listed = 0;
  const listMs = await timed(async () => {
    for (let page = 0; page < 20; page++) {
      const found = await triage.list(
        { topic: 'orders' },
        { limit: 50, ...(cursor !== undefined && { cursor }) },
      );
      listed += found.items.length;
      ({ cursor } = found);
      if (cursor === undefined) break;
    }
  });
  must(listed === Math.min(parked, 1000), `twenty pages of fifty are listed, got ${listed} events`);

  let inGroups = 0;
  const readGroups = async () => {
    const { items } = await triage.groups({ topic: 'orders' }, { limit: GROUPS });
    inGroups = items.reduce((sum, { count }) => sum + count, 0);
  };
  // The first question also adds up the latest changes of the counts.
  const groupMs = await timed(readGroups);
  const groupAgainMs = await timed(readGroups);
  must(inGroups === parked, `every event is in a group, got ${inGroups} of ${parked}`);

  let found = 0;
  const searchMs = await timed(async () => {
    found = await triage.count({ text: 'customer-1234' });
  });
  must(
    found === Math.ceil(Math.max(0, parked - 1234) / 10_000),
    `the search finds what is there, got ${found}`,
  );
  return { listMs, groupMs, groupAgainMs, searchMs };
}

/** Replays the late orders with a process that is killed half-way, and another that goes on. */
async function killedHalfWay(
  engine: Required<Engine>,
  place: Place,
  wanted: number,
): Promise<Record<string, number>> {
  const handled = new Set<string>();
  let repeated = 0;
  const orders = consumer({
    engine,
    topic: 'orders',
    handler: ({ id }) => {
      if (handled.has(id)) repeated += 1;
      handled.add(id);
    },
  });
  await orders.start();
  const request = {
    ...defaultReplay,
    filter: { type: 'late' },
    rate: 1e6,
    canary: 5,
    canaryMs: 0,
    outstandingMax: 20_000,
  };
  const { id } = await engine.triage.operations.begin(request, { who: 'drill', why: 'they are late' });

  const first = await runReplayer(place, id, wanted / 2);
  const atKill = (await engine.triage.operations.get(id))!.counts.released;
  must(
    first.isKilled && atKill < wanted,
    `the first replayer is killed half-way, ${atKill} of ${wanted} were released`,
  );
  const resumeMs = await timed(async () => {
    const second = await runReplayer(place, id, Infinity);
    must(second.lastStage === 'done', `the second replayer finishes, it ended in ${second.lastStage}`);
    must(
      second.heapMegabytes < HEAP_MAX_MEGABYTES,
      `a replayer holds little, got ${second.heapMegabytes} MB`,
    );
  });
  await orders.stop();

  const operation = (await engine.triage.operations.get(id))!;
  const resolved = await engine.triage.count({ status: 'resolved', type: 'late' });
  must(operation.stage === 'done', `the replay is done, it is ${operation.stage}`);
  must(handled.size === wanted, `each is released, got ${handled.size} of ${wanted}`);
  must(repeated === 0, `none is released twice, got ${repeated}`);
  must(resolved === wanted, `each is resolved, got ${resolved} of ${wanted}`);
  const { released, succeeded } = operation.counts;
  must(released === wanted && succeeded === wanted, `the counts are right, got ${released} and ${succeeded}`);
  return { replayed: wanted, releasedAtKill: atKill, resumeMs, repeated, lost: wanted - handled.size };
}

async function runReplayer(
  place: Place,
  id: string,
  killAt: number,
): Promise<{ isKilled: boolean; lastStage: string; heapMegabytes: number }> {
  const program = path.join(import.meta.dirname, 'parked/replayer-process.ts');
  const child = fork(program, [JSON.stringify(place), id], { execArgv: ['--conditions=holdfast-source'] });
  let isKilled = false;
  let lastStage = '';
  let most = 0;
  child.on('message', ({ stage, released, heapMegabytes: heap }: ReplayerReport) => {
    lastStage = stage;
    most = Math.max(most, heap);
    if (released >= killAt && !isKilled) isKilled = child.kill('SIGKILL');
  });
  await once(child, 'exit');
  return { isKilled, lastStage, heapMegabytes: Math.round(most) };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return Math.round(performance.now() - startedAt);
}

let collect: (() => void) | undefined;

function heapMegabytes(): number {
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
  return process.memoryUsage().heapUsed / 1e6;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The drill promised that ${what}.`);
}
