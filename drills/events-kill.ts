import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Broker } from '@holdfast/contracts';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import { eventOf } from './events/event-of.ts';
import { CHANCE, KillPlan, NEVER, type Role } from './events/kill-plan.ts';
import { type Effect, effectsIn, openPlace, type Place, prepareEffects } from './events/place.ts';

const WORKERS = 3;
/** A process that does not reach its point in this time is killed where it is. */
const POINT_MAX_MS = 4000;
const CHANCE_MAX_MS = 400;
/** A publisher lives longer, so that there is something to handle. */
const PASSES_MAX = { worker: 6, publisher: 20 };
const DRAIN_MAX_MS = 120_000;

export interface Counts {
  kills: number;
  events: number;
  lost: number;
  repeated: number;
  outOfOrder: number;
  /** Effects outside of the store that were made again after a crash, under the same key. */
  externalRepeats: number;
}

/** Workers and their publisher are killed at every step and by chance, while handlers fail and answers are lost. */
export async function drill({
  times,
  engine = 'sqlite',
}: Partial<DrillOptions>): Promise<Record<string, number>> {
  if (engine !== 'sqlite' && engine !== 'postgres')
    throw new Error(`--engine wants sqlite or postgres, got "${engine}".`);
  const counts = await kills(engine, times ?? (engine === 'sqlite' ? 1000 : 300));
  const promised = { lost: counts.lost, repeated: counts.repeated, outOfOrder: counts.outOfOrder };
  for (const [what, count] of Object.entries(promised)) must(count === 0, `nothing is ${what}, ${count} are`);
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
  try {
    return await trial(engine, address ?? server?.url, async ({ place, log }) => {
      const hits = await killAll(place, times, log);
      return { kills: Object.values(hits).reduce((sum, count) => sum + count), ...hits };
    });
  } finally {
    await server?.stop();
  }
}

/** What a trial has to do its worst with. */
export interface Stage {
  readonly place: Place;
  /** The file of the record. */
  readonly log: string;
  readonly broker: Broker;
  /** Has a worker run to the end. */
  worker(): void;
  /** Has a publisher run to the end; its refusals come in as codes. */
  publisher(): string[];
}

/** Lets `happen` happen, then has everything handled that is left, and counts. */
export async function trial(
  engine: Place['engine'],
  address: string | undefined,
  happen: (stage: Stage) => Promise<Record<string, number>>,
): Promise<Counts & Record<string, number>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-kill-'));
  const place: Place = {
    engine,
    address: address ?? path.join(folder, 'events.db'),
    record: path.join(folder, 'record.sock'),
  };
  const log = path.join(folder, 'record');
  const helpers: ChildProcess[] = [];
  const help = (role: Role) => {
    const child = start(role, [JSON.stringify(place), NEVER, '1', '0']);
    helpers.push(child);
    return child;
  };
  try {
    await once(start('recorder', [log, place.record]), 'message');
    const own = await openPlace(place);
    await own.broker.declare('drill', { ordering: 'key' });
    await prepareEffects(place);
    await warmUp(place);
    const counts = await happen({
      place,
      log,
      broker: own.broker,
      worker: () => void help('worker'),
      publisher() {
        const refusals: string[] = [];
        help('publisher').on('message', (message) => {
          if (message !== 'ready') refusals.push(String(message));
        });
        return refusals;
      },
    });
    await Promise.all(helpers.map(stopped));
    await drain(place, own.broker);
    must((await own.triage.count({})) === 0, 'nothing is parked: no event is at fault');
    await own.close();
    return { kills: 0, ...(await audit(place, log)), ...counts };
  } finally {
    for (const child of running) child.kill('SIGKILL');
    for (const each of [folder, compiled]) await rm(each, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A process that ends by itself saves its compile cache. */
async function warmUp(place: Place): Promise<void> {
  const worker = start('worker', [JSON.stringify(place), NEVER, '1']);
  await once(worker, 'message');
  await stopped(worker);
}

/** Runs processes until `times` of them have died at their points; returns the number at each point. */
async function killAll(place: Place, times: number, log: string): Promise<Record<string, number>> {
  const plan = new KillPlan(times);
  async function live(role: Role): Promise<void> {
    while (plan.goesOn) {
      // Whose deaths are all died lives on, so that the others have something to do.
      const point = plan.next(role) ?? NEVER;
      const died = await lifeOf(place, role, point, log, () => plan.goesOn);
      if (died !== undefined) plan.died(role, point, died);
    }
  }
  await Promise.all([live('publisher'), ...Array.from({ length: WORKERS }, () => live('worker'))]);
  return plan.hits;
}

/** One process from its start to its end; says at which point it died. `undefined`: it was stopped. */
async function lifeOf(
  place: Place,
  role: Role,
  point: string,
  log: string,
  goesOn: () => boolean,
): Promise<string | undefined> {
  const passes = 1 + Math.floor(Math.random() * PASSES_MAX[role]);
  const first = role === 'publisher' ? await firstUnpublished(log) : 0;
  const child = start(role, [JSON.stringify(place), point, String(passes), String(first)]);
  const gone = once(child, 'exit');
  await Promise.race([once(child, 'message'), gone]);
  let isHelped = false;
  for (
    const until = performance.now() + lifeMaxMs(point);
    child.exitCode === null && child.signalCode === null;
  ) {
    await Promise.race([gone, pause(20)]);
    if (!goesOn() && child.connected) {
      await stopped(child);
      return undefined;
    }
    if (performance.now() < until) continue;
    isHelped = child.kill('SIGKILL');
    await gone;
  }
  must(
    child.signalCode === 'SIGKILL',
    `processes end when they are killed, a ${role} ended with ${child.exitCode}`,
  );
  return isHelped ? CHANCE : point;
}

function lifeMaxMs(point: string): number {
  if (point === NEVER) return Infinity;
  return point === CHANCE ? Math.random() * CHANCE_MAX_MS : POINT_MAX_MS;
}

/** No process is killed any more: the remaining events are handled. */
async function drain(place: Place, broker: Awaited<ReturnType<typeof openPlace>>['broker']): Promise<void> {
  const worker = start('worker', [JSON.stringify(place), NEVER, '1']);
  for (const until = performance.now() + DRAIN_MAX_MS; ; await pause(20)) {
    const { oldestReadyMs: _, nextDueInMs: __, ...states } = await broker.counts('drill');
    if (Object.values(states).every((count) => count === 0)) break;
    must(performance.now() < until, `all is handled in the end, left are ${JSON.stringify(states)}`);
  }
  await stopped(worker);
}

/** Asks a process to stop; one that was killed meanwhile does not need it. */
async function stopped(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  if (child.connected) child.send('stop', () => {});
  await gone;
}

/** The publisher goes on after what it has the answer for; what it had none for it publishes again. */
async function firstUnpublished(log: string): Promise<number> {
  return (await recordIn(log)).published;
}

interface RecordKept {
  /** All below this number were answered. */
  readonly published: number;
  readonly effects: readonly (Effect & { readonly key: string })[];
}

async function recordIn(log: string): Promise<RecordKept> {
  const lines = (await readFile(log, 'utf8')).split('\n').slice(0, -1);
  let published = 0;
  const effects: (Effect & { key: string })[] = [];
  for (const line of lines) {
    const parts = line.split(' ');
    if (parts[0] === 'published') published = Number(parts[2]);
    else {
      const [, eventId = '', word, lane, number, key = ''] = parts;
      effects.push({ eventId, lane: `${word} ${lane}`, number: Number(number), key });
    }
  }
  return { published, effects };
}

/** What was promised to the publisher, against what was done. */
async function audit(place: Place, log: string): Promise<Omit<Counts, 'kills'>> {
  const record = await recordIn(log);
  const effects = await effectsIn(place);
  const done = new Set(effects.map(({ eventId }) => eventId));
  const outside = new Map<string, string>();
  for (const { eventId, key } of record.effects) {
    must(
      (outside.get(eventId) ?? key) === key,
      `a repeat has the same idempotency key, ${eventId} had another`,
    );
    outside.set(eventId, key);
  }
  let lost = 0;
  for (let number = 0; number < record.published; number++) if (!done.has(eventOf(number).id)) lost += 1;
  return {
    events: record.published,
    lost,
    repeated: effects.length - done.size,
    outOfOrder: disorder(effects) + disorder(firstOfEach(record.effects)),
    externalRepeats: record.effects.length - outside.size,
  };
}

function firstOfEach(effects: readonly Effect[]): Effect[] {
  return [...new Map(effects.toReversed().map((effect) => [effect.eventId, effect])).values()].reverse();
}

/** Effects that came after one of the same key which should have followed them. */
function disorder(effects: readonly Effect[]): number {
  const latest = new Map<string, number>();
  let count = 0;
  for (const { lane, number } of effects) {
    if (number < (latest.get(lane) ?? -1)) count += 1;
    else latest.set(lane, number);
  }
  return count;
}

const running = new Set<ChildProcess>();
/** Processes that live for moments must not spend them compiling. */
const compiled = path.join(os.tmpdir(), `holdfast-kill-cache-${process.pid}`);

function start(role: Role | 'recorder', args: readonly string[]): ChildProcess {
  const child = fork(path.join(import.meta.dirname, 'events', `${role}-process.ts`), args, {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`Being killed promised that ${what}.`);
}
