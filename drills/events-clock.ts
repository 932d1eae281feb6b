import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Broker, type Engine, waitingStates } from '@holdfast/contracts';
import type { DrillOptions } from '../scripts/drill.ts';
import { eventOf } from './events/event-of.ts';
import { type Effect, effectsIn, openPlace, type Place, prepareEffects } from './events/place.ts';
import { FakeWall, whyNoFakeWall } from './events-clock/fake-wall.ts';

const WORKERS = 3;
const JUMP_HOURS = 25;
/** Events of a round: half of them are published before the clock jumps, half after. */
const ROUND_EVENTS = 160;
/** Much longer than a lease, and much shorter than a jump. */
const DRAIN_MAX_MS = 60_000;
const FLOW_MAX_MS = 5_000;

export interface ClockCounts {
  jumps: number;
  /** Workers that were killed with leased events: one just before a jump, one after it. */
  kills: number;
  events: number;
  /** Not handled when there was time enough. */
  stuck: number;
  /** As `crashed` or anything else: no event is at fault. */
  parked: number;
  lost: number;
  repeated: number;
  outOfOrder: number;
}

interface Worker {
  readonly wall: FakeWall;
  child: ChildProcess;
}

/** What happens to the clocks of running workers. It says how many jumps it made. */
type Trouble = (workers: readonly Worker[], stopMs: number) => Promise<number>;

export interface ClockTrial {
  /** How often each trouble is made. */
  readonly times: number;
  readonly leaseMs: number;
  /** For how long all are stopped. */
  readonly stopMs: number;
}

const troubles: Record<string, Trouble> = {
  'one ahead': async ([first]) => set([first!], JUMP_HOURS),
  'one behind': async ([first]) => set([first!], -JUMP_HOURS),
  'all ahead': async (workers) => set(workers, JUMP_HOURS),
  'all behind': async (workers) => set(workers, -JUMP_HOURS),

  async 'to and fro'(workers) {
    let jumps = 0;
    for (let time = 0; time < 10; time++) {
      jumps += set(workers, time % 2 === 0 ? JUMP_HOURS : -JUMP_HOURS);
      await pause(300);
    }
    return jumps;
  },

  /** As when a machine sleeps, or a container is frozen. */
  async stopped(workers, stopMs) {
    for (const { child } of workers) child.kill('SIGSTOP');
    const jumps = set(workers, JUMP_HOURS);
    await pause(stopMs);
    for (const { child } of workers) child.kill('SIGCONT');
    return jumps;
  },
};

function set(workers: readonly Worker[], hours: number): number {
  for (const { wall } of workers) wall.set(hours);
  return workers.length;
}

/** The wall clocks of workers jump by 25 h to and fro while they handle events. */
export async function drill({ times = 5 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const counts = await clockJumps({ times, leaseMs: 3000, stopMs: 20_000 });
  for (const what of ['stuck', 'parked', 'lost', 'repeated', 'outOfOrder'] as const)
    must(counts[what] === 0, `nothing is ${what}, got ${JSON.stringify(counts)}`);
  return { ...counts };
}

export async function clockJumps({ times, leaseMs, stopMs }: ClockTrial): Promise<ClockCounts> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-clock-'));
  const place: Place = { engine: 'sqlite', address: path.join(folder, 'events.db'), record: '' };
  const counts: ClockCounts = {
    ...{ jumps: 0, kills: 0, events: 0, stuck: 0, parked: 0, lost: 0, repeated: 0, outOfOrder: 0 },
  };
  const children = new Set<ChildProcess>();
  const start = (wall: FakeWall) => startWorker(place, leaseMs, wall, children);
  try {
    const missing = whyNoFakeWall(folder);
    if (missing !== undefined) throw new Error(`The drill needs a wall clock to set: ${missing}.`);
    const own = await openPlace(place);
    await own.broker.declare('drill', { ordering: 'key' });
    await prepareEffects(place);
    const workers: Worker[] = [];
    for (let number = 0; number < WORKERS; number++) {
      const wall = new FakeWall(path.join(folder, `wall-${number}`));
      workers.push({ wall, child: await start(wall) });
    }
    for (let time = 0; time < times && counts.stuck === 0; time++) {
      for (const trouble of Object.values(troubles)) {
        if (counts.stuck > 0) break;
        await publish(own.broker, counts);
        await handled(place, counts.events - ROUND_EVENTS / 4);
        const [first, last] = [workers[0]!, workers.at(-1)!];
        die(last, counts);
        counts.jumps += await trouble(workers.slice(0, -1), stopMs);
        await publish(own.broker, counts);
        await handled(place, counts.events - ROUND_EVENTS / 4);
        // What it leased and retried by a wrong clock is left to those whose clocks are right.
        die(first, counts);
        counts.jumps += set(workers, 0);
        for (const dead of [first, last]) dead.child = await start(dead.wall);
        counts.stuck = await drained(own);
      }
    }
    counts.parked = await own.triage.count({});
    for (const { child } of workers) await stopped(child);
    await own.close();
    return { ...counts, ...audit(await effectsIn(place), counts.events) };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function die({ child }: Worker, counts: ClockCounts): void {
  child.kill('SIGKILL');
  counts.kills += 1;
}

async function publish(broker: Broker, counts: ClockCounts): Promise<void> {
  const half = ROUND_EVENTS / 2;
  await broker.publish(
    'drill',
    Array.from({ length: half }, (_, index) => eventOf(counts.events + index)),
  );
  counts.events += half;
}

/** Waits until `count` events are handled: the others are leased, or wait for a retry. */
async function handled(place: Place, count: number): Promise<void> {
  for (const until = performance.now() + FLOW_MAX_MS; performance.now() < until; await pause(10)) {
    if ((await effectsIn(place)).length >= count) return;
  }
}

/** How many are left when there was time enough. */
async function drained({ broker }: Pick<Required<Engine>, 'broker'>): Promise<number> {
  for (const until = performance.now() + DRAIN_MAX_MS; ; await pause(20)) {
    const counts = await broker.counts('drill');
    const states = Object.fromEntries(waitingStates.map((state) => [state, counts[state]]));
    const left = Object.values(states).reduce((sum, count) => sum + count);
    if (left === 0 || performance.now() > until) return left;
  }
}

function audit(effects: readonly Effect[], events: number) {
  const done = new Set(effects.map(({ eventId }) => eventId));
  let lost = 0;
  for (let number = 0; number < events; number++) if (!done.has(eventOf(number).id)) lost += 1;
  const latest = new Map<string, number>();
  let outOfOrder = 0;
  for (const { lane, number } of effects) {
    if (number < (latest.get(lane) ?? -1)) outOfOrder += 1;
    else latest.set(lane, number);
  }
  return { lost, repeated: effects.length - done.size, outOfOrder };
}

async function startWorker(
  place: Place,
  leaseMs: number,
  wall: FakeWall,
  children: Set<ChildProcess>,
): Promise<ChildProcess> {
  const file = path.join(import.meta.dirname, 'events-clock', 'clock-worker-process.ts');
  const child = fork(file, [JSON.stringify(place), String(leaseMs)], {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    env: { ...process.env, ...wall.env },
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  await once(child, 'message');
  return child;
}

async function stopped(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.send('stop');
  await gone;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A clock that jumps promised that ${what}.`);
}
