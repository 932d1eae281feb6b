import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { advanceOperation, defaultReplay, fingerprintOf, type Settlement } from '@holdfast/contracts';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import type { Clock } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { afterEach, describe, expect, test } from 'vitest';

const hourMs = 3_600_000;
const act = { who: 'ada', why: 'a test' };
const error = { type: 'Error', message: 'no', fingerprint: 'f' };
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Two processes of one machine on one file: their monotonic time is the same, their wall clocks can be set. */
async function setup() {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-clock-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const machine = virtualClock();
  const open = async () => {
    let offMs = 0;
    const clock: Clock = { ...machine, epochMs: () => machine.epochMs() + offMs };
    const monotonic = { bootId: 'one boot', now: machine.now };
    const engine = await openSqlite({ file: path.join(folder, 'events.db'), clock, monotonic });
    cleanups.push(() => engine.close());
    return {
      ...engine,
      clock,
      jump(ms: number) {
        offMs += ms;
      },
    };
  };
  const [one, other] = [await open(), await open()];
  await one.broker.declare('orders');
  return {
    one,
    other,
    wall: () => machine.epochMs(),
    pass: (ms: number) => machine.advance(ms),
    /** A time in which both do something now and then, as workers do. */
    async live(ms: number) {
      for (let passed = 0; passed < ms; passed += 500) {
        await machine.advance(Math.min(500, ms - passed));
        for (const { broker } of [one, other]) await broker.publish('orders', []);
      }
    },
  };
}

type Process = Awaited<ReturnType<typeof setup>>['one'];

const lease = { owner: 'w', limit: 10, leaseMs: 1000 };

async function taken({ broker }: Pick<SqliteEngine, 'broker'>, suspects = false): Promise<string[]> {
  const { deliveries } = await broker.lease('orders', { ...lease, suspects });
  return deliveries.map(({ payload }) => String(payload));
}

function parked(id: string) {
  const event = {
    ...{ id, topic: 'orders', payload: id, type: undefined, key: undefined, tenant: undefined, headers: {} },
    ...{ correlationId: id, idempotencyKey: id, originTopic: 'orders', firstSeenAt: 0, expiresAt: undefined },
    ...{ replay: undefined },
    diagnosis: {
      reason: 'Error',
      message: 'no',
      stop: 'poison',
      finalAttempt: 1,
      consumer: undefined,
      error,
      story: [],
    },
  };
  return { ...event, fingerprint: fingerprintOf(event) };
}

const jumps = [
  ...[25, -25].map((hours) => ({ hours, who: 'one process', all: false })),
  ...[25, -25].map((hours) => ({ hours, who: 'all processes', all: true })),
];

describe.each(jumps)('when the wall clock of $who jumps by $hours h', ({ hours, all }) => {
  const jumpMs = hours * hourMs;
  const jump = ({ one, other }: { one: Process; other: Process }) => {
    one.jump(jumpMs);
    if (all) other.jump(jumpMs);
  };

  test('a retry comes due after its delay, whoever decided it and whoever asks', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    const [a, b] = (await one.broker.lease('orders', lease)).deliveries;
    const retry = { kind: 'retry', delayMs: 100, error, story: [] } as const;
    await other.broker.settle([{ lease: a!.lease, ...retry }]);
    jump({ one, other, ...rest });
    await one.broker.settle([{ lease: b!.lease, ...retry }]);
    for (const process of [one, other]) {
      const { deliveries, nextDueInMs } = await process.broker.lease('orders', lease);
      expect({ deliveries, nextDueInMs }).toEqual({ deliveries: [], nextDueInMs: 100 });
    }
    await pass(100);
    expect([await taken(other), await taken(one)].flat()).toEqual(['a', 'b']);
  });

  test('a live lease is kept, by a heartbeat and without one', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    const held = [one, other].map((process) => process.broker.lease('orders', { ...lease, limit: 1 }));
    const [a, b] = (await Promise.all(held)).flatMap(({ deliveries }) => deliveries);
    await pass(500);
    jump({ one, other, ...rest });
    expect(await one.broker.extend([a!.lease], 1000)).toEqual([true]);
    await pass(499);
    for (const process of [one, other]) {
      const { suspects, deliveries } = await process.broker.lease('orders', lease);
      expect({ suspects, deliveries }).toEqual({ suspects: 0, deliveries: [] });
    }
    const acks = [a!, b!].map((each): Settlement => ({ lease: each.lease, kind: 'ack' }));
    expect(await other.broker.settle(acks)).toMatchObject([{ took: true }, { took: true }]);
  });

  test('the lease of the dead ends when it was to end', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    await other.broker.lease('orders', { ...lease, limit: 1 });
    jump({ one, other, ...rest });
    await one.broker.lease('orders', { ...lease, limit: 1 });
    await pass(999);
    for (const process of [one, other]) expect(await taken(process, true)).toEqual([]);
    await pass(1);
    for (const process of [one, other])
      expect(await process.broker.counts('orders')).toMatchObject({ suspect: 2 });
    expect([await taken(one, true), await taken(other, true)].flat()).toEqual(['a', 'b']);
  });

  test('patience lasts as long as was said', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.broker.publish('orders', [{ payload: 'a', patienceMs: 1000 }]);
    await pass(400);
    jump({ one, other, ...rest });
    const [delivery] = (await one.broker.lease('orders', lease)).deliveries;
    expect(delivery).toMatchObject({ patienceLeftMs: 600, expiresAt: one.clock.epochMs() + 600 });
  });

  test('a key is held for its lease, and its record kept for its time', async () => {
    const { one, other, pass, ...rest } = await setup();
    const claim = {
      scope: 's',
      fingerprint: 'f',
      leaseMs: 1000,
      keepMs: 5000,
      whenLost: 'takeOver',
    } as const;
    const [held, done] = await one.ledger.begin([
      { ...claim, key: 'held' },
      { ...claim, key: 'done' },
    ]);
    expect([held!.kind, done!.kind]).toEqual(['acquired', 'acquired']);
    if (done?.kind !== 'acquired') throw new Error('not acquired');
    await one.ledger.complete([{ hold: done.hold, record: 'r', keepMs: 2000 }]);
    jump({ one, other, ...rest });
    for (const { ledger } of [one, other]) {
      expect(await ledger.begin([{ ...claim, key: 'held' }])).toEqual([
        { kind: 'running', retryAfterMs: 1000 },
      ]);
      expect(await ledger.begin([{ ...claim, key: 'done' }])).toEqual([{ kind: 'done', record: 'r' }]);
    }
    await one.sweep(100);
    await pass(1000);
    expect(await other.ledger.begin([{ ...claim, key: 'held' }])).toMatchObject([{ kind: 'acquired' }]);
    // A tenth more at most, while the store's clock is ahead of the wall clock.
    await pass(1112);
    expect(await one.ledger.begin([{ ...claim, key: 'done' }])).toMatchObject([{ kind: 'acquired' }]);
  });

  test('a rate limit neither fills up nor closes', async () => {
    const { one, other, pass, ...rest } = await setup();
    const request = [{ key: 'k', ratePerMs: 1 / 100, burst: 1 }];
    expect(await one.rateLimits.take([request])).toMatchObject([{ allowed: true }]);
    jump({ one, other, ...rest });
    for (const { rateLimits } of [one, other]) {
      expect(await rateLimits.take([request])).toMatchObject([{ allowed: false, waitMs: 100 }]);
    }
    await pass(100);
    expect(await one.rateLimits.take([request])).toMatchObject([{ allowed: true }]);
  });

  test('a control ends by itself after its time, and is shown with the time of day', async () => {
    const { one, other, pass, ...rest } = await setup();
    const control = { kind: 'pause', topic: 'orders' } as const;
    await one.broker.publish('orders', [{ payload: 'a' }]);
    await one.broker.controls.impose(control, act, 1000);
    jump({ one, other, ...rest });
    for (const { broker, clock } of [one, other]) {
      const { controls } = await broker.controls.active();
      expect(controls).toMatchObject([{ until: clock.epochMs() + 1000 }]);
    }
    await pass(999);
    expect([await taken(one), await taken(other)].flat()).toEqual([]);
    await pass(1);
    expect(await taken(other)).toEqual(['a']);
  });

  test('nothing is swept before its time, and the audit log says the time of day', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.broker.declare('kept', { keepSettledMs: 1000 });
    await one.broker.publish('kept', [{ payload: 'settled' }]);
    const [settled] = (await one.broker.lease('kept', lease)).deliveries;
    await one.broker.settle([{ lease: settled!.lease, kind: 'ack' }]);
    await one.triage.put([{ ...parked('event 1'), keepMs: 1000 }]);
    jump({ one, other, ...rest });
    expect([await one.sweep(100), await other.sweep(100)]).toEqual([0, 0]);
    await pass(999);
    const { items } = await one.broker.history('kept', { limit: 10 });
    expect(items).toMatchObject([{ payload: 'settled' }]);
    expect(await one.triage.get('event 1')).toMatchObject({ removedAt: one.clock.epochMs() + 1 });
    await pass(1);
    const at = one.clock.epochMs();
    expect(await one.sweep(100)).toBe(2);
    expect((await other.audit.list({}, { limit: 1 })).items).toMatchObject([{ what: 'retention', at }]);
  });

  test('a kept event stays for its time, and a process is forgotten after 10 s', async () => {
    const { one, other, pass, ...rest } = await setup();
    await one.triage.put([{ ...parked('event 1'), keepMs: 10 }]);
    const report = {
      ...{ id: 'p', service: 's', host: 'h', pid: 1, version: '1', startedAt: 0, clockOffsetMs: 0 },
      ...{ controlsVersion: 0, notObeyed: [], policies: [], consumers: [], leftOut: 0 },
    };
    await one.presence.report(report);
    const { id } = await one.triage.operations.begin(
      { kind: 'keep', filter: { ids: ['event 1'] }, keepMs: 9999 },
      act,
    );
    jump({ one, other, ...rest });
    expect(await other.triage.operations.apply(id, 10)).toBe(1);
    await pass(9000);
    expect([await one.sweep(100), await other.sweep(100)]).toEqual([0, 0]);
    for (const { presence } of [one, other]) expect(await presence.processes()).toHaveLength(1);
    // A tenth more at most, while the store's clock agrees with the wall clock again.
    await pass(2112);
    for (const { presence } of [one, other]) expect(await presence.processes()).toEqual([]);
    expect(await other.sweep(100)).toBe(2);
    expect(await one.triage.count({})).toBe(0);
  });

  test('a replay goes on at its rate, after its canary has been watched', async () => {
    const { one, other, pass, ...rest } = await setup();
    const ids = Array.from({ length: 5 }, (_, index) => `event ${index}`);
    await one.triage.put(ids.map(parked));
    const request = { ...defaultReplay, filter: { topic: 'orders' }, canary: 1, canaryMs: 300, rate: 10 };
    const { id } = await one.triage.operations.begin(request, act);
    const released: string[] = [];
    const step = async () => {
      const before = released.length;
      await advanceOperation(one.triage, id, one.clock, async (_, events) => {
        released.push(...events.map((event) => event.id!));
      });
      await one.triage.resolve(released.slice(before).map((each) => ({ id: each, operation: id })));
    };
    for (let steps = 0; steps < 4; steps++) await step();
    expect(released).toEqual(['event 0']);
    jump({ one, other, ...rest });
    for (let steps = 0; steps < 4; steps++) await step();
    expect(released).toEqual(['event 0']);
    await pass(300);
    for (let steps = 0; steps < 4; steps++) await step();
    expect(released).toEqual(['event 0', 'event 1']);
    // Ten a second: one for each 100 ms.
    for (const last of [3, 4, 5]) {
      await pass(100);
      for (let steps = 0; steps < 2; steps++) await step();
      expect(released).toEqual(ids.slice(0, last));
    }
  });
});

describe('a time of day', () => {
  test('comes by the wall clock, however far that jumps', async () => {
    const { one, other, wall } = await setup();
    await one.broker.publish('orders', [
      { payload: 'tomorrow', dueAt: wall() + 24 * hourMs },
      { payload: 'in a while', delayMs: 24 * hourMs },
      { payload: 'yesterday', dueAt: wall() - 24 * hourMs },
    ]);
    expect(await taken(other)).toEqual(['yesterday']);
    expect(await other.broker.counts('orders')).toMatchObject({ delayed: 2, nextDueInMs: 24 * hourMs });
    one.jump(24 * hourMs - 10);
    const { deliveries, nextDueInMs } = await one.broker.lease('orders', lease);
    expect({ deliveries, nextDueInMs }).toEqual({ deliveries: [], nextDueInMs: 10 });
    one.jump(10);
    const { items } = await other.broker.waiting('orders', { limit: 10 });
    expect(items.filter(({ state }) => state === 'delayed')).toMatchObject([
      { dueAt: wall() + 24 * hourMs },
      { dueAt: wall() + 24 * hourMs },
    ]);
    expect(await taken(one)).toEqual(['tomorrow']);
    one.jump(24 * hourMs);
    expect(await taken(one)).toEqual([]);
  });

  test('does not come before it is that time, also after the clock was set back', async () => {
    const { one, wall, live } = await setup();
    await one.broker.publish('orders', [{ payload: 'a', dueAt: wall() + 1000 }]);
    one.jump(-1000);
    await live(1999);
    expect(await taken(one)).toEqual([]);
    await live(1);
    expect(await taken(one)).toEqual(['a']);
  });

  test('may be for an event behind another of its key, and need not be waited for', async () => {
    const { one, wall, pass } = await setup();
    await one.broker.declare('lanes', { ordering: 'key' });
    const dueAt = wall() + 1000;
    const [, , c] = await one.broker.publish('lanes', [
      { payload: 'a', key: 'k' },
      { payload: 'b', key: 'k', dueAt },
      { payload: 'c', dueAt },
      { payload: 'd', key: 'k' },
    ]);
    const take = async () =>
      (await one.broker.lease('lanes', { ...lease, runMax: 5, leaseMs: 1e6 })).deliveries;
    const [a] = await take();
    expect(a).toMatchObject({ payload: 'a' });
    expect(await one.broker.retryNow('lanes', [c!.id, c!.id], act)).toEqual([true, false]);
    expect(await take()).toMatchObject([{ payload: 'c' }]);
    await pass(500);
    await one.broker.settle([{ lease: a!.lease, kind: 'ack' }]);
    expect(await take()).toEqual([]);
    await pass(500);
    expect(await take()).toMatchObject([{ payload: 'b' }, { payload: 'd' }]);
  });
});

test('a discard covers what was parked before the clock was set back', async () => {
  const { one } = await setup();
  await one.triage.put([parked('event 1')]);
  one.jump(-25 * hourMs);
  const { operations } = one.triage;
  const { id } = await operations.begin({ kind: 'discard', filter: { topic: 'orders' } }, act);
  expect(await operations.apply(id, 10)).toBe(1);
  expect(await one.triage.get('event 1')).toMatchObject({ discarded: { ...act, at: one.clock.epochMs() } });
});

test('a replay selects what was parked before the clock was set back', async () => {
  const { one } = await setup();
  await one.triage.put([parked('event 1')]);
  one.jump(-25 * hourMs);
  const { id, startedAt } = await one.triage.operations.begin(
    { ...defaultReplay, filter: { topic: 'orders' } },
    act,
  );
  expect(startedAt).toBe(one.clock.epochMs());
  expect(await one.triage.operations.select(id, 10)).toBe(1);
});
