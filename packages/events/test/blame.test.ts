import { consumer, type EventNotice, ExclusiveRun, subscribeEvents } from '@holdfast/events';
import fc from 'fast-check';
import { breakerOf, policy, transient } from 'holdfast';
import { after, scripted } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Blame, outageMaxMs } from '../src/consumer/blame.ts';
import type { DependencyGate } from '../src/consumer/dependency-gate.ts';
import type { Task } from '../src/consumer/task.ts';
import { idOf, idsFrom, outageStage, type Store } from './outage-stage.ts';
import { down } from './stage.ts';

const exhausted = 'attempts_exhausted';

describe('a poison event', () => {
  test.each<Store>(['memory', 'sqlite'])(
    'among good ones pays for each of its failures, and they flow, on %s',
    async (store) => {
      const { service, calls, done, pass, start, publish, parked, triage, breaker } =
        await outageStage(store);
      const isPoison = (id: string) => id === idOf(2);
      await start({ concurrency: 1, isPoison, policy: { attempts: 4 } });
      service.isDown = true;
      await publish(30, 30);
      await pass('1m');
      service.isDown = false;
      const before = calls.filter(isPoison).length;
      await pass('10m');
      expect(await parked()).toEqual({ [idOf(2)]: exhausted });
      expect(done.toSorted()).toEqual(idsFrom(0, 30).filter((id) => !isPoison(id)));
      expect(breaker()).toBe('closed');
      // The last failure before the others succeeded is one of the four.
      expect(calls.filter(isPoison).length - before).toBeLessThan(4);
      const { story } = (await triage.get(idOf(2)))!.diagnosis;
      expect(story.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    },
  );

  test('that was free in an outage pays for its last failure once others succeed', async () => {
    const { service, calls, pass, start, publish, charges, parked, triage } = await outageStage();
    const isPoison = (id: string) => id === idOf(0);
    service.isDown = true;
    // Another caller has opened the breaker: no attempt has been counted.
    const orders = await start({ concurrency: 1, isPoison, policy: { attempts: 3 } });
    await orders.openBreaker();
    await publish(1);
    await pass('5m');
    expect(calls.length).toBeGreaterThan(5);
    expect(await charges()).toEqual({ [idOf(0)]: '0 + 0' });
    service.isDown = false;
    const before = calls.length;
    await publish(5, 0, 1);
    await pass('5m');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted });
    // Two more, and the last probe that was not counted at first.
    expect(calls.slice(before).filter(isPoison).length).toBe(2);
    expect((await triage.get(idOf(0)))!.diagnosis.story.length).toBe(3);
  });

  test('that failed while others succeeded is parked after its attempts, even if it is the only event then', async () => {
    const { calls, done, pass, start, publish, parked } = await outageStage();
    const isPoison = (id: string) => id === idOf(0);
    await start({ isPoison, concurrency: 1 });
    await publish(10);
    await pass('5m');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted });
    expect(calls.filter(isPoison).length).toBe(6);
    expect(done.length).toBe(9);
  });

  test('that is the only event is parked soon after another event has succeeded', async () => {
    const { pass, start, publish, parked } = await outageStage();
    await start({ isPoison: (id) => id === idOf(0) });
    await publish(1);
    await pass('1h');
    expect(await parked()).toEqual({});
    await publish(1, 0, 1);
    await pass('5m');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted });
  });

  test.each<Store>(['memory', 'sqlite'])(
    'at the head of the only key is taken for an outage for four hours, then parked, and the rest flows in order, on %s',
    { timeout: 60_000 },
    async (store) => {
      const { done, pass, start, publish, parked, breaker } = await outageStage(store);
      await start({ isPoison: (id) => id === idOf(0) });
      await publish(8, 1);
      await pass('3h');
      expect([await parked(), done]).toEqual([{}, []]);
      await pass('2h');
      expect(await parked()).toEqual({ [idOf(0)]: exhausted });
      expect(done).toEqual(idsFrom(1, 7));
      expect(breaker()).toBe('closed');
    },
  );

  test('that is all there is ends parked, and what comes later flows', async () => {
    const { done, pass, start, publish, parked, breaker } = await outageStage();
    await start({ isPoison: (id) => id === idOf(0) });
    await publish(1);
    await pass('5h');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted });
    await publish(5, 0, 1);
    await pass('2m');
    expect(done.toSorted()).toEqual(idsFrom(1, 5));
    expect(breaker()).toBe('closed');
  });

  test('releases its key when holdFor is over, even if it may be an outage', async () => {
    const { done, pass, start, publish, parked } = await outageStage();
    await start({ isPoison: (id) => id === idOf(0), holdFor: '10m', policy: { attempts: 20 } });
    await publish(8, 1);
    await pass('20m');
    expect(done).toEqual(idsFrom(1, 7));
    await pass('1h');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted });
  });

  test('and another pay although good ones come one by one, and never enough of them to close the breaker', async () => {
    const { done, pass, start, publish, parked } = await outageStage();
    await start({ isPoison: (id) => id < idOf(2), ordering: 'key' });
    await publish(2, 100);
    await pass('2m');
    for (let index = 2; index < 20; index++) {
      await publish(1, 100, index);
      await pass('1m');
    }
    expect(await parked()).toEqual({ [idOf(0)]: exhausted, [idOf(1)]: exhausted });
    expect(done).toEqual(idsFrom(2, 18));
  });
});

describe('probes', () => {
  test.each([
    ['events', 0],
    ['keys', 8],
  ])('rotate over %s', async (_, keys) => {
    const { service, calls, pass, start, publish } = await outageStage();
    await start({ concurrency: 1 });
    service.isDown = true;
    await publish(8, keys);
    await pass('30s');
    const before = calls.length;
    await pass('30m');
    const probes = calls.slice(before);
    expect(probes.length).toBeGreaterThan(40);
    for (let first = 0; first + 8 <= probes.length; first++) {
      expect(new Set(probes.slice(first, first + 8)).size).toBe(8);
    }
  });

  test('what arrives in an outage is the next probe', async () => {
    const { service, calls, pass, start, publish } = await outageStage();
    await start({ concurrency: 1 });
    service.isDown = true;
    await publish(8);
    await pass('30m');
    await publish(3, 0, 8);
    const before = calls.length;
    await pass('5m');
    expect(calls.slice(before, before + 3)).toEqual(idsFrom(8, 3));
  });

  test('later events of a key wait behind a probe that fails', async () => {
    const { service, calls, done, pass, start, publish } = await outageStage();
    await start({ concurrency: 10 });
    service.isDown = true;
    await publish(12, 3);
    await pass('2h');
    expect(new Set(calls)).toEqual(new Set(idsFrom(0, 3)));
    service.isDown = false;
    await pass('2m');
    for (const key of [0, 1, 2]) {
      const ofKey = idsFrom(0, 12).filter((_, index) => index % 3 === key);
      expect(done.filter((id) => ofKey.includes(id))).toEqual(ofKey);
    }
  });

  test('that fail are reported, with the error', async () => {
    const { service, pass, start, publish } = await outageStage();
    const told: EventNotice[] = [];
    onTestFinished(subscribeEvents((notice) => told.push(notice)));
    await start({ concurrency: 1 });
    service.isDown = true;
    await publish(1);
    await pass('1m');
    expect(told.filter(({ type }) => type === 'returned').at(-1)).toMatchObject({
      id: idOf(0),
      error: { message: 'connection reset' },
    });
  });
});

describe('in an outage', () => {
  test.each([
    ['one key', 1],
    ['many keys', 10],
  ])('processes that start anew park nothing, with %s', async (_, keys) => {
    const { service, done, pass, start, publish, parked } = await outageStage();
    service.isDown = true;
    await publish(20, keys);
    for (let starts = 0; starts < 12; starts++) {
      const orders = await start();
      await pass('10m');
      const stopped = orders.stop();
      await pass('1s');
      await stopped;
    }
    expect(await parked()).toEqual({});
    service.isDown = false;
    await start();
    await pass('5m');
    expect(done.toSorted()).toEqual(idsFrom(0, 20));
  });

  test.each<Store>(['memory', 'sqlite'])(
    'processes that are killed with probes in hand park nothing, on %s',
    { timeout: 60_000 },
    async (store) => {
      const { service, done, calls, pass, start, publish, parked, clock } = await outageStage(store);
      service.isDown = true;
      await publish(20, 5);
      const slowly = scripted(clock, after('5s', 1));
      for (let starts = 0; starts < 2; starts++) {
        const process = `, process ${starts}`;
        const orders = await start({
          process,
          handle: async (_event, pay) => {
            await pay().finally(() => (breakerOf(orders.state().dependsOn[0]!)?.isClosed ? 0 : slowly()));
          },
        });
        await pass('20m');
        const before = calls.length;
        while (calls.length === before) await pass('500ms');
        orders.die();
      }
      await start({ process: ', the last' });
      await pass('2h');
      expect(await parked()).toEqual({});
      service.isDown = false;
      await pass('5m');
      expect(done.toSorted()).toEqual(idsFrom(0, 20));
    },
  );

  test.each([
    ['one key', 1],
    ['many keys', 10],
  ])('of two processes none parks anything, with %s', async (_, keys) => {
    const { service, done, pass, start, publish, parked, charges } = await outageStage();
    service.isDown = true;
    await publish(20, keys);
    await start({ process: ', one' });
    await start({ process: ', two' });
    await pass('5m');
    const before = await charges();
    await pass('2h');
    expect([await charges(), await parked()]).toEqual([before, {}]);
    service.isDown = false;
    await pass('5m');
    expect(done.toSorted()).toEqual(idsFrom(0, 20));
  });

  test('nothing is parked before the breaker opens, however few the attempts', async () => {
    const { service, done, pass, start, publish, parked } = await outageStage();
    const orders = await start({ policy: { attempts: 2 } });
    service.isDown = true;
    await publish(5, 1);
    await pass('2h');
    expect([await parked(), orders.state().status]).toEqual([{}, 'dependency_down']);
    service.isDown = false;
    await pass('2m');
    expect(done).toEqual(idsFrom(0, 5));
  });

  test('nothing is parked because the service says when it will be back', async () => {
    const { service, done, pass, start, publish, parked } = await outageStage();
    const orders = await start({
      handle: (_event, pay) =>
        pay().catch(() => {
          throw Object.assign(new Error('maintenance'), { status: 503, headers: { 'retry-after': '7200' } });
        }),
    });
    service.isDown = true;
    await orders.openBreaker();
    await publish(20);
    await pass('2h');
    expect(await parked()).toEqual({});
    service.isDown = false;
    await pass('2m');
    expect(done.length).toBe(20);
  });

  test('a handler that ends long after its call failed pays no more than others', async () => {
    const { service, pass, start, publish, charges, clock } = await outageStage();
    const slowly = scripted(clock, after('40s', 1), after('40s', 1), after('40s', 1), after('40s', 1));
    const orders = await start({ handle: (_event, pay) => pay().finally(() => slowly()) });
    service.isDown = true;
    await orders.openBreaker();
    await publish(1);
    await pass('2m');
    expect(await charges()).toEqual({ [idOf(0)]: '0 + 0' });
  });

  test('events that do without the service flow as probes, and say nothing about it', async () => {
    const { service, done, pass, start, publish, parked, charges } = await outageStage();
    const needsNone = (id: string) => Number(id.slice(1)) % 2 === 1;
    const orders = await start({
      concurrency: 1,
      handle: ({ id }, pay) => (needsNone(id) ? undefined : pay()),
    });
    service.isDown = true;
    await orders.openBreaker();
    for (let round = 0; round < 24; round++) {
      await publish(4, 0, round * 4);
      await pass('5m');
    }
    expect(done).toEqual(idsFrom(0, 96).filter(needsNone));
    expect(new Set(Object.values(await charges()))).toEqual(new Set(['0 + 0']));
    expect(await parked()).toEqual({});
  });

  test('of one of two services the other says nothing', async () => {
    const { service, name, clock, calls, pass, start, publish, parked, charges } = await outageStage();
    const stock = policy({ name: `${name}, stock`, attempts: 1 }, { clock });
    const orders = await start({
      concurrency: 1,
      dependsOn: [name, `${name}, stock`],
      handle: async (_event, pay) => {
        await stock.run(() => {});
        await pay();
      },
    });
    service.isDown = true;
    await orders.openBreaker();
    await publish(4);
    await pass('2h');
    expect(stock.counters.succeeded).toBe(calls.length);
    expect(new Set(Object.values(await charges()))).toEqual(new Set(['0 + 0']));
    expect(await parked()).toEqual({});
  });

  test('of a part of the service costs nothing, although some of its calls succeed', async () => {
    const { name, clock, service, pass, start, publish, parked, charges } = await outageStage();
    const calls = policy({ name: `${name}, calls`, attempts: 1 }, { clock });
    const orders = await start({
      concurrency: 2,
      dependsOn: [`${name}, calls`],
      handle: async () => {
        await calls.run(() => {});
        await calls.run(() => {
          if (service.isDown) throw down();
        });
      },
    });
    service.isDown = true;
    await publish(50);
    await pass('1m');
    expect(orders.state().status).toBe('dependency_down');
    const before = await charges();
    await pass('2h');
    expect([await charges(), await parked()]).toEqual([before, {}]);
  });

  test('a handler that fails for a reason of its own pays', async () => {
    const { service, calls, pass, start, publish, parked } = await outageStage();
    const orders = await start({
      policy: { attempts: 3 },
      handle: () => Promise.reject(transient(new Error('not paid for'))),
    });
    service.isDown = true;
    await orders.openBreaker();
    await publish(2);
    await pass('2m');
    expect(await parked()).toEqual({ [idOf(0)]: exhausted, [idOf(1)]: exhausted });
    expect(calls.length).toBe(6);
  });

  test('suspects wait for a probe like all others, and keep no other consumer waiting', async () => {
    const { service, name, engine, clock, calls, done, pass, start, publish, parked } = await outageStage();
    await publish(3);
    const dead = await start({ process: ', dead', handle: () => new Promise(() => {}) });
    await pass('1s');
    dead.die();
    service.isDown = true;
    const exclusiveRun = new ExclusiveRun();
    const orders = await start({ exclusiveRun });
    await orders.openBreaker();
    const mails: string[] = [];
    const others = consumer({
      ...{ engine, topic: 'mails', clock, exclusiveRun },
      handler: ({ id }) => void mails.push(id),
    });
    await others.start();
    await pass('1m');
    const before = calls.length;
    for (let minute = 0; minute < 60; minute++) {
      await engine.broker.publish('mails', [{ id: `${name} ${minute}`, payload: '{}' }]);
      await pass('1m');
      expect(mails.length).toBe(minute + 1);
    }
    expect(calls.length - before).toBeGreaterThan(100);
    expect(calls.length - before).toBeLessThan(1000);
    expect(await parked()).toEqual({});
    service.isDown = false;
    await pass('2m');
    expect(done.toSorted()).toEqual(idsFrom(0, 3));
    const stopped = others.stop();
    await pass('1s');
    await stopped;
  });
});

test('at most a thousand events are remembered, and none for longer than an outage lasts', () => {
  let failed = 0;
  const gate = { hasDependencies: true, names: ['payment'], isDown: () => true };
  const blame = new Blame({ ...gate, counts: () => [{ failed, succeeded: 0 }] } as unknown as DependencyGate);
  const fail = (id: string, now: number) => {
    const task = { id } as Task;
    blame.begin(task);
    failed += 1;
    blame.remember(task, now, blame.of(task, now, outageMaxMs));
  };
  fc.assert(
    fc.property(fc.array(fc.nat(3000), { maxLength: 3000 }), (ids) => {
      for (const id of ids) fail(`e${id}`, 0);
      expect(blame.remembered).toBeLessThanOrEqual(1000);
    }),
    { numRuns: 20 },
  );
  fail('the last', outageMaxMs + 1);
  expect(blame.remembered).toBe(1);
});
