import { assemblies } from '@holdfast/assembly';
import { MemoryStorage, type MemoryTransaction, memoryEngine } from '@holdfast/contracts/memory';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { expect, test } from 'vitest';
import {
  childProgram,
  hasRace,
  type Part,
  programOf,
  randomParts,
  signalsOf,
  type World,
} from './random-program.ts';
import { settle } from './stage.ts';

interface Outcome {
  readonly state: string;
  readonly result: unknown;
  readonly deaths: number;
}

/** Runs a program to its end, with faults, deaths and perhaps a cancellation, and checks what must hold. */
async function run(
  seed: number,
  parts: readonly Part[],
  faultRatio: number,
  deathRatio: number,
  cancels: boolean,
): Promise<Outcome> {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  const chance = seededRandom('chance', seed);
  const violations: string[] = [];
  const undone: string[] = [];
  let deaths = 0;
  let current = 0;

  const stepOf = (key: string) => {
    for (const [id, row] of storage.journal.rows) {
      if (!key.startsWith(`${id}/`)) continue;
      const step = row.steps.get(key.slice(id.length + 1));
      if (step) return step;
    }
    return undefined;
  };

  function open(number: number) {
    let writesLeft = Infinity;
    const isDead = () => current !== number;
    const world: World = {
      ...{ clock, faults: chance, faultRatio },
      async begins(path) {
        if (isDead()) await new Promise(() => {});
        if (stepOf(path)?.state === 'done') violations.push(`${path} ran again after its record`);
      },
      undone(path) {
        if (!isDead()) undone.push(path);
      },
      effect(tx, path) {
        tx.put(path, String(Number(tx.get(path) ?? 0) + 1));
      },
    };
    const random = seededRandom('process', seed, number);
    const engine = memoryEngine({
      ...{ clock, storage, random },
      beforeWrite() {
        if (isDead() || writesLeft-- <= 0) throw new Error('the process has died');
      },
    });
    const program = programOf(parts, world);
    const work = assemblies<MemoryTransaction>({
      ...{ engine, clock, random, lease: '2s', hold: '100ms', deathsMax: 1000 },
      programs: [program, childProgram(world)],
    });
    return {
      work,
      program,
      dieAfter(writes: number) {
        writesLeft = writes;
      },
    };
  }

  let process = open(0);
  await process.work.run();
  await process.work.start(process.program, undefined, { id: 'x' });
  const toSend = signalsOf(parts);
  let toCancel = cancels ? Math.floor(chance() * 40) : Infinity;
  for (let turn = 0; turn < 3000; turn++) {
    await clock.advance(chance() * 300);
    await settle(1);
    const row = storage.journal.rows.get('x')!;
    if (row.state === 'done' && toCancel === Infinity) break;
    if (row.state === 'stopped') break;
    if (row.state === 'parked') throw new Error(`seed ${seed}: parked, ${row.parked?.message}`);
    if (toSend.length > 0 && chance() < 0.2)
      await process.work
        .get('x')
        .signal(toSend.shift()!, 'sent', { id: `s${toSend.length}` })
        .catch(() => {});
    if (toCancel-- <= 0) {
      await process.work
        .get('x')
        .cancel('enough')
        .catch(() => {});
      toCancel = row.stop ? Infinity : 0;
    }
    if (chance() < deathRatio) {
      process.dieAfter(Math.floor(chance() * 4));
      await clock.advance(chance() * 500);
      await settle(1);
      deaths++;
      current++;
      process = open(current);
      await process.work.run();
    }
  }
  const row = storage.journal.rows.get('x')!;
  expect(violations, `seed ${seed}`).toEqual([]);
  for (const [path, count] of storage.effects) expect(`${path} ${count}`, `seed ${seed}`).toBe(`${path} 1`);
  for (const { start, steps, state } of storage.journal.rows.values()) {
    const orders = [...steps.values()].map(({ order }) => order);
    expect(new Set(orders).size, `seed ${seed}: orders are unique`).toBe(orders.length);
    if (state !== 'stopped') continue;
    // Everything that was done and can be compensated was, and the latest first.
    const ofThis = [...steps.values()]
      .filter(({ kind }) => kind === 'run')
      .sort((one, other) => other.order - one.order);
    const expected = ofThis
      .filter((step) => step.state === 'done' && String(step.result).startsWith('"did'))
      .map(({ path }) => `${start.id}/${path}`);
    const distinct = [...new Set(undone)].filter((path) => expected.includes(path));
    expect(distinct, `seed ${seed}: compensated in reverse`).toEqual(expected);
  }
  return {
    state: row.state,
    result: row.result === undefined ? undefined : JSON.parse(String(row.result)),
    deaths,
  };
}

/** What a program returns that only reads a finished record. */
async function replayed(seed: number, parts: readonly Part[]): Promise<{ first: unknown; again: unknown }> {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  const random = seededRandom('chance', seed);
  const world: World = {
    ...{ clock, faults: () => 1, faultRatio: 0 },
    begins: async () => {},
    undone: () => {},
    effect: () => {},
  };
  const program = programOf(parts, world);
  const open = () =>
    assemblies<MemoryTransaction>({
      ...{ engine: memoryEngine({ clock, storage, random }), clock, random },
      programs: [program, childProgram(world)],
    });
  const first = open();
  await first.run();
  const it = await first.start(program, undefined, { id: 'x' });
  for (const name of signalsOf(parts)) await it.signal(name, 'sent');
  for (let turn = 0; turn < 2000 && storage.journal.rows.get('x')!.state !== 'done'; turn++) {
    await clock.advance(random() * 200);
    await settle(1);
  }
  const row = storage.journal.rows.get('x')!;
  const result = row.result;
  Object.assign(row, { state: 'waiting', dueAt: 0, endedAt: undefined, result: undefined });
  const stopped = first.stop();
  await clock.advance('1m');
  await stopped;
  const second = open();
  await second.run();
  for (let turn = 0; turn < 20 && row.state !== 'done'; turn++) {
    await clock.advance(50);
    await settle(1);
  }
  return {
    first: JSON.parse(String(result)),
    again: row.result === undefined ? row.parked : JSON.parse(String(row.result)),
  };
}

const seeds = Array.from({ length: 120 }, (_, seed) => seed);

test('a program gives the same again when it only reads its record, races and all', async () => {
  for (const seed of seeds) {
    const parts = randomParts(seededRandom('parts', seed), 5);
    const { first, again } = await replayed(seed, parts);
    expect(again, `seed ${seed}`).toEqual(first);
  }
}, 60_000);

test('faults and deaths change nothing in the result of a program without races', async () => {
  let deaths = 0;
  for (const seed of seeds) {
    const parts = randomParts(seededRandom('parts', seed), 5);
    const calm = await run(seed, parts, 0, 0, false);
    const stormy = await run(seed, parts, 0.25, 0.15, false);
    expect(stormy.state, `seed ${seed}`).toBe('done');
    deaths += stormy.deaths;
    if (hasRace(parts)) continue;
    const sorted = (result: unknown) => [...(result as string[])].sort();
    expect(sorted(stormy.result), `seed ${seed}`).toEqual(sorted(calm.result));
  }
  expect(deaths).toBeGreaterThan(seeds.length);
}, 120_000);

test('a cancelled program ends compensated, in reverse, whatever happens meanwhile', async () => {
  for (const seed of seeds) {
    const parts = randomParts(seededRandom('parts', seed), 5);
    const { state } = await run(seed, parts, 0.2, 0.1, true);
    expect(state, `seed ${seed}`).toBe('stopped');
  }
}, 120_000);
