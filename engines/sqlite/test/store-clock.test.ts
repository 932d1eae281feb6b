import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqlite } from '@holdfast/sqlite';
import fc from 'fast-check';
import { virtualClock } from 'holdfast/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { migrate, schemaSteps } from '../src/schema.ts';
import { StoreClock } from '../src/store-clock.ts';
import { systemMonotonicClock } from '../src/uptime.ts';

const hourMs = 3_600_000;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A machine on which processes tell the store's time, each with a wall clock of its own. */
function setup() {
  const database = new DatabaseSync(':memory:');
  cleanups.push(() => database.close());
  migrate(database);
  const machine = { now: 0, epochMs: 1e12, bootId: 'first boot' };
  const process = () => {
    const { bootId } = machine;
    const its = { offMs: 0 };
    const clock = { ...virtualClock(), epochMs: () => Math.floor(machine.epochMs + its.offMs) };
    return Object.assign(its, {
      store: new StoreClock(database, clock, { bootId, now: () => machine.now }),
      wall: () => clock.epochMs(),
    });
  };
  return {
    machine,
    process,
    database,
    pass(ms: number) {
      machine.now += ms;
      machine.epochMs += ms;
    },
  };
}

describe('store time', () => {
  const passed = fc.oneof(fc.double({ min: 0, max: 3000, noNaN: true }), fc.constantFrom(999, 1000, 1e7));
  const step = fc.record({
    passedMs: passed,
    who: fc.nat(2),
    jumpMs: fc.oneof(fc.constant(0), fc.constantFrom(25 * hourMs, -25 * hourMs, 5, -5, 1e13)),
    does: fc.constantFrom('tick', 'read', 'roll back'),
  });

  test('passes at 0.9 to 1.1 times the speed of time, for all alike, whatever wall clocks say', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
        const { process, database, machine, pass } = setup();
        const processes = [process(), process(), process()];
        let [last, lastAt] = [processes[0]!.store.tick().now, machine.now];
        for (const { passedMs, who, jumpMs, does } of steps) {
          const { store } = processes[who]!;
          pass(passedMs);
          processes[who]!.offMs += jumpMs;
          if (does === 'roll back') {
            database.exec('BEGIN');
            store.tick();
            database.exec('ROLLBACK');
            store.forget();
          }
          const { now } = does === 'tick' ? store.tick() : store.read();
          const gone = machine.now - lastAt;
          // Whole milliseconds: one may be lost by rounding, and come back with the next look.
          expect(now - last).toBeGreaterThanOrEqual(gone * 0.9 - 1.001);
          expect(now - last).toBeLessThanOrEqual(gone * 1.1 + 1.001);
          expect(now).toBeGreaterThanOrEqual(last);
          for (const each of processes) expect(each.store.read().now).toBe(now);
          [last, lastAt] = [now, machine.now];
        }
      }),
    );
  });

  test.each([10_000, -10_000])('has met a wall clock that was set by %i ms after ten times as long', (ms) => {
    const { process, pass } = setup();
    const its = process();
    its.store.tick();
    its.offMs = ms;
    pass(1000);
    for (let seconds = 0; seconds < 100; seconds++) {
      expect(its.store.tick().now).not.toBe(its.wall());
      pass(1000);
    }
    expect(its.store.tick().now).toBe(its.wall());
  });

  test('is not carried past the wall clock by a long time without a write', () => {
    const { process, pass } = setup();
    const its = process();
    its.store.tick();
    its.offMs = 10_000;
    pass(1000);
    its.store.tick();
    pass(100 * hourMs);
    expect(its.store.read().now).toBe(its.wall());
  });

  test('does not count the time in which the machine slept, and comes nearer afterwards', () => {
    const { process, pass, machine } = setup();
    const { store, wall } = process();
    const { now } = store.tick();
    machine.epochMs += 8 * hourMs;
    pass(1000);
    expect(store.tick().now).toBe(now + 1000);
    pass(1000);
    expect(store.tick().now).toBe(now + 2100);
    pass(80 * hourMs);
    expect(store.tick().now).toBe(wall());
  });

  test('is the wall clock after a restart of the machine, and never goes back', () => {
    const { process, pass, machine } = setup();
    const before = process();
    before.store.tick();
    pass(2000);
    const { now: last } = before.store.tick();
    Object.assign(machine, { now: 5_000_000, bootId: 'second boot', epochMs: machine.epochMs + 8 * hourMs });
    const after = process();
    expect(after.store.tick().now).toBe(last + 8 * hourMs);
    Object.assign(machine, { now: 17, bootId: 'third boot', epochMs: 0 });
    const reset = process();
    expect(reset.store.tick().now).toBe(last + 8 * hourMs);
    pass(1000);
    expect(reset.store.tick().now).toBe(last + 8 * hourMs + 900);
  });

  test('is the wall clock after a restart that has no name, when the monotonic clock shows less', () => {
    const { process, pass, machine } = setup();
    pass(5_000_000);
    const { store, wall } = process();
    store.tick();
    Object.assign(machine, { now: 17, epochMs: machine.epochMs + 8 * hourMs });
    expect(process().store.tick().now).toBe(wall());
  });

  test('is written once a second, not with every write', () => {
    const { process, pass, database } = setup();
    const { store } = process();
    const changes = () => Number(database.prepare('SELECT total_changes() AS count').get()?.count);
    store.tick();
    const before = changes();
    for (let ms = 1; ms < 1000; ms++) {
      pass(1);
      store.tick();
    }
    expect(changes()).toBe(before);
    pass(1);
    store.tick();
    expect(changes()).toBeGreaterThan(before);
  });
});

describe('the machine’s monotonic clock', () => {
  const script = `
    import { systemMonotonicClock } from './src/uptime.ts';
    const { bootId, now } = systemMonotonicClock();
    console.log(JSON.stringify({ bootId, now: now() }));`;
  const inProcess = (...before: string[]) => {
    const [program, ...args] = [
      ...before,
      process.execPath,
      '--input-type=module',
      '--no-warnings',
      '-e',
      script,
    ];
    const text = execFileSync(program!, args, {
      encoding: 'utf8',
      cwd: path.join(import.meta.dirname, '..'),
    });
    return JSON.parse(text) as { bootId: string; now: number };
  };

  test('is the same in every process', () => {
    const clock = systemMonotonicClock();
    const before = clock.now();
    const { bootId, now } = inProcess();
    expect(bootId).toBe(clock.bootId);
    expect(now).toBeGreaterThan(before);
    expect(now).toBeLessThan(clock.now());
    if (process.platform === 'linux') expect(bootId).not.toContain(hostname());
  });

  const noNamespace = whyNoNamespace();
  test.skipIf(noNamespace)(
    `is the same in a time namespace${noNamespace ? ` (skipped: ${noNamespace})` : ''}`,
    () => {
      const clock = systemMonotonicClock();
      const before = clock.now();
      const { bootId, now } = inProcess('unshare', '--time', '--monotonic', '100000', '--fork');
      expect(bootId).toBe(clock.bootId);
      expect(now).toBeGreaterThan(before);
      expect(now).toBeLessThan(clock.now());
    },
  );
});

function whyNoNamespace(): string | undefined {
  try {
    execFileSync('unshare', ['--time', '--monotonic', '1', '--fork', 'true'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'only root may have a time namespace';
  }
}

test('a store of before there was a clock in it is opened, and its delays and leases go on', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-clock-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'events.db');
  const clock = virtualClock();
  const now = clock.epochMs();
  const old = new DatabaseSync(file);
  migrate(old, schemaSteps.slice(0, 1));
  const [leased, delayed] = [2 ** 40 + 1, 2 ** 40 + 2];
  old.exec(`
    INSERT INTO holdfast_topic VALUES (1, 'orders', 'none', 0);
    UPDATE holdfast_room SET last = 10;
    INSERT INTO holdfast_event (seq, topic, id, payload, first_seen_at, due_at) VALUES
      (${leased}, 1, 'a', 'leased', ${now}, ${now}), (${delayed}, 1, 'b', 'delayed', ${now}, ${now + 2000});
    INSERT INTO holdfast_line VALUES (1, 0, ${now + 2000}, ${delayed});
    INSERT INTO holdfast_lease VALUES (9, 1, 'w', ${now + 1000}, ${now + 1000}, 1, 0, 0, '${leased} 0 1')`);
  old.close();
  const { broker, close } = await openSqlite({ file, clock });
  cleanups.push(close);
  expect(await broker.counts('orders')).toMatchObject({ leased: 1, delayed: 1, nextDueInMs: 2000 });
  await clock.advance(1000);
  expect(await broker.counts('orders')).toMatchObject({ suspect: 1, delayed: 1 });
  await clock.advance(1000);
  expect(await broker.counts('orders')).toMatchObject({ ready: 1 });
});

test('a clock that cannot be read is told to whoever reads or writes', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-clock-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'events.db');
  const clock = virtualClock();
  const { broker, transaction, close } = await openSqlite({ file, clock });
  cleanups.push(close);
  await broker.declare('orders');
  await transaction((database) => database.exec('DROP TABLE holdfast_clock'));
  await clock.advance(1000);
  const refused = {
    code: 'HOLDFAST_SQLITE_FAILED',
    message: `${file} refused: no such table: holdfast_clock`,
  };
  await expect(broker.publish('orders', [{ payload: 'a' }])).rejects.toMatchObject(refused);
  await expect(broker.lease('orders', { owner: 'w', limit: 1, leaseMs: 1 })).rejects.toMatchObject(refused);
});
