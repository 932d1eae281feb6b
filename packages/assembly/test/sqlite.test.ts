import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { assemblies, assembly } from '@holdfast/assembly';
import { openSqlite } from '@holdfast/sqlite';
import { transient } from 'holdfast';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { expect, test } from 'vitest';
import { settle } from './stage.ts';

/** A file on virtual time. Processes die on it before or after any commit. */
async function onFile(seed: number) {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-assembly-'));
  const clock = virtualClock();
  const chance = seededRandom('chance', seed);
  const violations: string[] = [];
  let current = -1;
  const closes: (() => Promise<void>)[] = [];

  async function open() {
    const number = ++current;
    let writesLeft = Infinity;
    const isDead = () => current !== number;
    const engine = await openSqlite({
      file: path.join(folder, 'orders.db'),
      clock,
      random: seededRandom('engine', seed, number),
      beforeWrite() {
        if (isDead() || writesLeft-- <= 0) throw new Error('the process has died');
      },
    });
    closes.push(() => engine.close());
    const act = async (key: string) => {
      if (isDead()) await new Promise(() => {});
      const [id, ...rest] = key.split('/');
      const { items } = await engine.journal.steps(id!, { limit: 100 });
      if (items.some((step) => step.path === rest.join('/') && step.state === 'done')) violations.push(key);
      if (chance() < 0.2) throw transient(new Error('a fault'));
      return key;
    };
    const order = assembly('order', async (step, number: number) => {
      const paid = await step.run('charge', ({ key }) => act(key), { policy });
      const both = await step.all('prepare', {
        stock: (branch) => branch.run('reserve', ({ key }) => act(key), { policy }),
        label: (branch) => branch.run('print', ({ key }) => act(key), { policy }),
      });
      await step.transaction('book', (tx: DatabaseSync) => {
        tx.exec('CREATE TABLE IF NOT EXISTS booking (number INTEGER)');
        tx.prepare('INSERT INTO booking VALUES (?)').run(number);
      });
      await step.sleep('cool', '20s');
      return [paid, both.stock, both.label];
    });
    const random = seededRandom('process', seed, number);
    const work = assemblies<DatabaseSync>({
      ...{ engine, programs: [order], clock, random, lease: '2s', hold: '100ms', deathsMax: 1000 },
    });
    await work.run();
    return {
      work,
      order,
      engine,
      dieAfter(writes: number) {
        writesLeft = writes;
      },
    };
  }

  async function dispose() {
    current = Infinity;
    for (const close of closes) await close();
    rmSync(folder, { recursive: true });
  }

  return { clock, chance, violations, open, dispose };
}

test('idle processes on one file do not wake each other', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-assembly-'));
  const clock = virtualClock();
  const program = assembly('job', async (step) => step.run('work', () => 1));
  let claims = 0;
  const works = [];
  const engines = [];
  for (let number = 0; number < 3; number++) {
    const random = seededRandom('engine', number);
    const engine = await openSqlite({ file: path.join(folder, 'x.db'), clock, random });
    const { claim } = engine.journal;
    const journal = {
      ...engine.journal,
      claim(request: Parameters<typeof claim>[0]) {
        claims++;
        return claim(request);
      },
    };
    const work = assemblies<DatabaseSync>({
      engine: { ...engine, journal },
      programs: [program],
      clock,
      random,
    });
    await work.run();
    works.push(work);
    engines.push(engine);
  }
  await (await works[0]!.start(program, undefined)).status();
  for (let turn = 0; turn < 50; turn++) {
    await clock.advance(100);
    await settle(2);
  }
  claims = 0;
  for (let turn = 0; turn < 200; turn++) {
    await clock.advance(50);
    await settle(2);
  }
  // Ten seconds, three processes: each asks when the clock of the store has moved on, once a second, and seldom else.
  expect(claims).toBeLessThan(90);
  for (const work of works) {
    const stopped = work.stop();
    await settle(5);
    await stopped;
  }
  for (const engine of engines) await engine.close();
  rmSync(folder, { recursive: true });
});

const policy = { attempts: 1000, backoff: { base: '50ms', cap: '500ms' } } as const;

test('orders on a file end once, whenever a process dies: no finished step runs again, and bookings are single', async () => {
  for (let seed = 0; seed < 8; seed++) {
    const { clock, chance, violations, open, dispose } = await onFile(seed);
    let process = await open();
    const ids = Array.from({ length: 10 }, (_, number) => `order-${number}`);
    for (const [number, id] of ids.entries()) await process.work.start(process.order, number, { id });
    let deaths = 0;
    for (let turn = 0; turn < 2000; turn++) {
      await clock.advance(chance() * 400);
      await settle(2);
      const stored = await process.engine.journal.get(ids);
      if (stored.every((each) => each?.state === 'done')) break;
      if (chance() < 0.1) {
        process.dieAfter(Math.floor(chance() * 3));
        await clock.advance(chance() * 300);
        await settle(2);
        deaths++;
        process = await open();
      }
    }
    expect(violations, `seed ${seed}`).toEqual([]);
    expect(deaths).toBeGreaterThan(0);
    const stored = await process.engine.journal.get(ids);
    for (const [index, id] of ids.entries()) {
      expect(stored[index]?.state, `seed ${seed}`).toBe('done');
      expect(JSON.parse(String(stored[index]?.result))).toEqual([
        `${id}/charge`,
        `${id}/prepare/stock/reserve`,
        `${id}/prepare/label/print`,
      ]);
    }
    const booked = await process.engine.transaction((tx) =>
      tx.prepare('SELECT number FROM booking ORDER BY 1').all(),
    );
    expect(booked.map(({ number }) => number)).toEqual(ids.map((_, number) => number));
    await dispose();
  }
}, 60_000);
