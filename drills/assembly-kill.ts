import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Journal } from '@holdfast/contracts';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import {
  expectedResult,
  finishedBefore,
  killPoints,
  type OrderStep,
  stepsWithin,
} from './assembly/order-program.ts';
import { effectsIn, openPlace, type Place, prepareEffects } from './assembly/place.ts';

const WORKERS = 3;
const CHANCE = 'by chance';
const NEVER = 'never';
/** A process that does not reach its point in this time is killed where it is. */
const POINT_MAX_MS = 3000;
const CHANCE_MAX_MS = 600;
const PASSES_MAX = 6;
const DRAIN_MAX_MS = 120_000;

export interface Counts {
  kills: number;
  /** How many were accepted. */
  assemblies: number;
  /** Accepted, and not done in the end, or done with another result. */
  lost: number;
  /** Steps that ran again after they were on record, and effects within transactions that are there twice. */
  repeated: number;
  /** Effects outside of the store that were made again after a death, under the same key. */
  externalRepeats: number;
}

/** Workers are killed around every step, record and claim, and by chance, while steps fail. */
export async function drill({
  times,
  engine = 'sqlite',
}: Partial<DrillOptions>): Promise<Record<string, number>> {
  if (engine !== 'sqlite' && engine !== 'postgres')
    throw new Error(`--engine wants sqlite or postgres, got "${engine}".`);
  const counts = await kills(engine, times ?? (engine === 'sqlite' ? 500 : 200));
  must(counts.lost === 0, `every assembly ends, ${counts.lost} did not`);
  must(counts.repeated === 0, `no finished step runs again, ${counts.repeated} did`);
  return counts;
}

/** `address`: of a server that is there already. */
export async function kills(
  engine: Place['engine'],
  times: number,
  address?: string,
): Promise<Counts & Record<string, number>> {
  const server = engine === 'postgres' && address === undefined ? await ownService('postgres') : undefined;
  if (server?.missing !== undefined) throw new Error(`The drill needs ${engine}: ${server.missing}.`);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-assembly-kill-'));
  const place: Place = {
    engine,
    address: address ?? server?.url ?? path.join(folder, 'orders.db'),
    log: path.join(folder, 'log'),
  };
  try {
    const own = await openPlace(place);
    await prepareEffects(place);
    await stopped(await started(place, NEVER, 1, ''));
    const hits = await killAll(place, times);
    await drain(place, own.journal);
    const counts = await audit(place, own.journal);
    await own.close();
    return { kills: Object.values(hits).reduce((sum, count) => sum + count), ...counts, ...hits };
  } finally {
    for (const child of running) child.kill('SIGKILL');
    await server?.stop();
    for (const each of [folder, compiled]) await rm(each, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs processes until `times` of them have died; returns the number at each point. */
async function killAll(place: Place, times: number): Promise<Record<string, number>> {
  const hits: Record<string, number> = {};
  // Each point as often as the others, and by chance as often as at points.
  const aims = Array.from({ length: times }, (_, life) =>
    life % 3 === 2 ? CHANCE : killPoints[(life - Math.floor(life / 3)) % killPoints.length]!,
  );
  async function live(): Promise<void> {
    for (let aim = aims.pop(); aim !== undefined; aim = aims.pop()) {
      const died = await lifeOf(place, aim, `life${aims.length}`);
      hits[died] = (hits[died] ?? 0) + 1;
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, live));
  return hits;
}

/** One process from its start to its death; says at which point it died. */
async function lifeOf(place: Place, point: string, starts: string): Promise<string> {
  const child = await started(place, point, 1 + Math.floor(Math.random() * PASSES_MAX), starts);
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  const gone = isOver() ? Promise.resolve() : once(child, 'exit');
  const lifeMs = point === CHANCE ? Math.random() * CHANCE_MAX_MS : POINT_MAX_MS;
  await Promise.race([gone, pause(lifeMs)]);
  const isHelped = !isOver() && child.kill('SIGKILL');
  await gone;
  must(
    child.signalCode === 'SIGKILL',
    `processes end when they are killed, one ended with ${child.exitCode}`,
  );
  return isHelped ? CHANCE : point;
}

/** No process is killed any more: the remaining assemblies end. */
async function drain(place: Place, journal: Journal): Promise<void> {
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => started(place, NEVER, 1, '')));
  for (const until = performance.now() + DRAIN_MAX_MS; ; await pause(50)) {
    const counts = await journal.counts();
    const open = counts.reduce(
      (sum, { waiting, running: leased, parked }) => sum + waiting + leased + parked,
      0,
    );
    if (open === 0) break;
    must(performance.now() < until, `all end, left are ${JSON.stringify(counts)}`);
  }
  await Promise.all(workers.map(stopped));
}

/** What was promised to those who started assemblies, against what was done. */
async function audit(place: Place, journal: Journal): Promise<Omit<Counts, 'kills'>> {
  const lines = (await readFile(place.log, 'utf8')).split('\n').map((line) => line.split(' '));
  const accepted = lines.flatMap(([what, id = '']) => (what === 'accepted' ? [id] : []));
  const asked = lines.flatMap(([what, id = '']) => (what === 'asked' ? [id] : []));
  const keys = new Map<string, string>();
  const finished = new Map<string, Set<string>>();
  let repeated = 0;
  let externalRepeats = 0;
  for (const [what, id = '', step = '', key = ''] of lines) {
    if (what === 'ran') {
      const before = finished.get(id) ?? new Set();
      if (before.has(step)) repeated++;
      finished.set(id, new Set([...before, ...finishedBefore(step as OrderStep)]));
    }
    if (what !== 'did') continue;
    const known = keys.get(`${id} ${step}`);
    if (known !== undefined) externalRepeats++;
    must((known ?? key) === key, `a repeat has the same idempotency key, ${id} ${step} had another`);
    keys.set(`${id} ${step}`, key);
  }

  const effects = await effectsIn(place);
  const stored = await journal.get(asked);
  const isDone = new Map(
    asked.map((id, index) => [id, stored[index]?.result === JSON.stringify(expectedResult(id))]),
  );
  const known = asked.filter((_, index) => stored[index] !== undefined);
  const ended = new Set(effects);
  const missing = known.filter(
    (id) => !isDone.get(id) || stepsWithin.some((step) => !ended.has(`${id} ${step}`)),
  );
  const forgotten = accepted.filter((id) => !known.includes(id));
  return {
    assemblies: accepted.length,
    lost: missing.length + forgotten.length,
    repeated: repeated + effects.length - ended.size,
    externalRepeats,
  };
}

const running = new Set<ChildProcess>();
/** Processes that live for moments must not spend them compiling. */
const compiled = path.join(os.tmpdir(), `holdfast-assembly-cache-${process.pid}`);

async function started(place: Place, point: string, passes: number, starts: string): Promise<ChildProcess> {
  const args = [JSON.stringify(place), point, String(passes), starts];
  const child = fork(path.join(import.meta.dirname, 'assembly', 'worker-process.ts'), args, {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  await Promise.race([once(child, 'message'), once(child, 'exit')]);
  return child;
}

/** Asks a process to stop. */
async function stopped(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  if (child.connected) child.send('stop', () => {});
  await gone;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`Being killed promised that ${what}.`);
}
