import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { waitingStates } from '@holdfast/contracts';
import type { DrillOptions, DrillResult } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import type { OwnServer } from '../scripts/services/start-service.ts';
import { audit, type Findings, firstUnpublished, isAllHandled } from './events/audit.ts';
import { CHANCE, KillPlan, NEVER, type Role } from './events/kill-plan.ts';
import { type BrokerName, brokerNames } from './events/open-broker.ts';
import { isBroker, openPlace, type Place, prepareEffects } from './events/place.ts';
import { restartUnderLoad } from './events/restart-under-load.ts';
import type { Stage } from './events/stage.ts';
import { addToTotals } from './events/totals.ts';

const WORKERS = 3;
/** A process that does not reach its point in this time is killed where it is. On a broker it first has to get a share. */
const POINT_MAX_MS = { store: 4000, broker: 12_000 };
const CHANCE_MAX_MS = { store: 400, broker: 2000 };
/** A publisher lives longer, so that there is something to handle. */
const PASSES_MAX = { worker: 6, publisher: 20 };
const DRAIN_MAX_MS = 120_000;
/** What nobody has handled this long after the broker was empty is lost. */
const EMPTY_MAX_MS = 10_000;
/** A broker is restarted once for this many kills. */
const KILLS_PER_RESTART = 10;
/** RabbitMQ 3.10 may never elect a leader for a queue if it is killed in the first second of that queue. */
const CALM_MS = 2000;
const names = ['sqlite', 'postgres', ...brokerNames] as const;

export interface Counts extends Findings {
  kills: number;
}

/** Workers and their publisher are killed at every step and by chance, while handlers fail and answers are lost. */
export async function drill({
  times,
  engine = 'sqlite',
  fresh = false,
}: Partial<DrillOptions>): Promise<DrillResult> {
  const name = names.find((each) => each === engine);
  if (name === undefined) throw new Error(`--engine wants one of ${names.join(', ')}, got "${engine}".`);
  if (!isBroker(name)) {
    const counts = await kills(name, times ?? (name === 'sqlite' ? 1000 : 300));
    assertPromised(counts);
    return counts;
  }
  const counts = await killsAndRestarts(name, times ?? 200);
  const totals = await addToTotals(`events-kill-${name}`, counts, fresh);
  assertPromised(counts);
  return { ...counts, totals };
}

function assertPromised({ lost, repeated, outOfOrder }: Counts): void {
  for (const [what, count] of Object.entries({ lost, repeated, outOfOrder }))
    must(count === 0, `nothing is ${what}, ${count} are`);
}

/** `address`: of a server that is there already. */
export async function kills(
  engine: 'sqlite' | 'postgres',
  times: number,
  address?: string,
): Promise<Counts & Record<string, number>> {
  const server = engine === 'postgres' && address === undefined ? await ownService('postgres') : undefined;
  if (server?.missing !== undefined) throw new Error(`The drill needs ${engine}: ${server.missing}.`);
  try {
    return await trial(engine, address ?? server?.url, (stage) => killAll(stage, times));
  } finally {
    await server?.stop();
  }
}

/** First processes are killed, then the broker itself is restarted under load, every second time by a kill. */
export async function killsAndRestarts(
  engine: BrokerName,
  times: number,
  given?: OwnServer,
  restarts: number = Math.ceil(times / KILLS_PER_RESTART),
): Promise<Counts & Record<string, number>> {
  const server = given ?? (await ownService(engine === 'sqs' ? 'elasticmq' : engine));
  if (server.missing !== undefined) throw new Error(`The drill needs ${engine}: ${server.missing}.`);
  try {
    return await trial(engine, server.url, async (stage) => {
      const hits = await killAll(stage, times);
      const refusals = await restartUnderLoad(stage, server, restarts, CALM_MS);
      return { ...hits, restarts, refused: refusals.length };
    });
  } finally {
    if (given === undefined) await server.stop();
  }
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
    store: path.join(folder, 'store.db'),
    record: path.join(folder, 'record.sock'),
  };
  const log = path.join(folder, 'record');
  const helpers: ChildProcess[] = [];
  const help = (role: Role) => {
    const first = role === 'publisher' ? firstUnpublished(log) : 0;
    const child = start(role, [JSON.stringify(place), NEVER, '1', String(first)]);
    helpers.push(child);
    return child;
  };
  try {
    await once(start('recorder', [log, place.record]), 'message');
    const own = await openPlace(place);
    await own.broker.declare('drill', { ordering: 'key' });
    if (!isBroker(engine)) await prepareEffects(place);
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
    await drain(place, own.broker, log);
    must((await own.triage.count({})) === 0, 'nothing is parked: no event is at fault');
    await own.close();
    const findings = await audit(place, log);
    if (findings.lost + findings.repeated + findings.outOfOrder > 0) await keepRecord(engine, log);
    return { kills: 0, ...findings, ...counts };
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
async function killAll({ place, log }: Stage, times: number): Promise<Record<string, number>> {
  const plan = new KillPlan(place.engine, times);
  async function live(role: Role): Promise<void> {
    while (plan.goesOn) {
      // Whose deaths are all died lives on, so that the others have something to do.
      const point = plan.next(role) ?? NEVER;
      const died = await lifeOf(place, role, point, log, () => plan.goesOn);
      if (died !== undefined) plan.died(role, point, died);
    }
  }
  await Promise.all([live('publisher'), ...Array.from({ length: WORKERS }, () => live('worker'))]);
  return { kills: Object.values(plan.hits).reduce((sum, count) => sum + count), ...plan.hits };
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
  const first = role === 'publisher' ? firstUnpublished(log) : 0;
  const child = start(role, [JSON.stringify(place), point, String(passes), String(first)]);
  const gone = once(child, 'exit');
  await Promise.race([once(child, 'message'), gone]);
  let isHelped = false;
  for (
    const until = performance.now() + lifeMaxMs(place, point);
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

function lifeMaxMs({ engine }: Place, point: string): number {
  if (point === NEVER) return Infinity;
  const kind = isBroker(engine) ? 'broker' : 'store';
  return point === CHANCE ? Math.random() * CHANCE_MAX_MS[kind] : POINT_MAX_MS[kind];
}

/** No process is killed any more: the remaining events are handled. */
async function drain(place: Place, broker: Stage['broker'], log: string): Promise<void> {
  const worker = start('worker', [JSON.stringify(place), NEVER, '1']);
  let emptySince = Infinity;
  for (const until = performance.now() + DRAIN_MAX_MS; ; await pause(20)) {
    const counts = await broker.counts('drill');
    const states = Object.fromEntries(waitingStates.map((state) => [state, counts[state]]));
    const isEmpty = Object.values(states).every((count) => count === 0);
    emptySince = isEmpty ? Math.min(emptySince, performance.now()) : Infinity;
    // Some brokers do not count what a process has in hand.
    const isLate = performance.now() > emptySince + EMPTY_MAX_MS;
    if (isEmpty && (!isBroker(place.engine) || isAllHandled(log) || isLate)) break;
    must(performance.now() < until, `all is handled in the end, left are ${JSON.stringify(states)}`);
  }
  await stopped(worker);
}

/** What went wrong can be read there afterwards. */
async function keepRecord(engine: string, log: string): Promise<void> {
  const kept = path.join(os.tmpdir(), `holdfast-kill-${engine}-${process.pid}.record`);
  await copyFile(log, kept);
  console.error(`The record is kept as ${kept}.`);
}

/** Asks a process to stop; one that was killed meanwhile does not need it. */
async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) throw new Error(`A process of the drill ended with ${child.exitCode}.`);
  if (child.signalCode !== null) return;
  const gone = once(child, 'exit');
  if (child.connected) child.send('stop', () => {});
  await gone;
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
