import diagnostics from 'node:diagnostics_channel';
import { missing } from '@holdfast/contracts';
import {
  ConflictError,
  type Consumer,
  commit,
  consumer,
  drainOnSignals,
  type HandledEvent,
  LeaseLostError,
  park,
  subscribeEvents,
  topicControls,
} from '@holdfast/events';
import { ambientContext, breakerOf, policy } from 'holdfast';
import { after, scripted } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { act, down, stage } from './stage.ts';

/** A handler that takes its time, on the clock of the stage. */
function slow(
  clock: ReturnType<typeof stage>['clock'],
  ms: number,
  then: (event: HandledEvent) => unknown = () => {},
) {
  return async (event: HandledEvent) => {
    await scripted(clock, after(ms, undefined))();
    return then(event) as undefined;
  };
}

describe('concurrency', () => {
  test('so many handlers at once, never more', async () => {
    const { clock, open, publish } = stage();
    let running = 0;
    let most = 0;
    const orders = await open({
      concurrency: 3,
      handler: async () => {
        running += 1;
        most = Math.max(most, running);
        await scripted(clock, after('10ms', 1))();
        running -= 1;
      },
    });
    await publish(...Array.from({ length: 20 }, (_, index) => ({ id: `e${index}` })));
    await clock.advance('1s');
    expect([most, orders.state().counters.succeeded]).toEqual([3, 20]);
  });

  test('is changed while it runs, by a control that reaches every consumer', async () => {
    const { clock, broker, open, publish } = stage();
    const orders = await open({ concurrency: 2, handler: slow(clock, 1000) });
    await topicControls(broker, 'orders').concurrency(5, act);
    await publish(...Array.from({ length: 20 }, (_, index) => ({ id: `e${index}` })));
    await clock.advance('100ms');
    expect(orders.state()).toMatchObject({ running: 5, concurrency: 5 });
    await topicControls(broker, 'orders').concurrency(1, act);
    await clock.advance('3s');
    expect(orders.state()).toMatchObject({ running: 1, concurrency: 1 });
  });

  test('is changed also while every handler is busy', async () => {
    const { clock, broker, open, publish } = stage();
    const orders = await open({ concurrency: 2, handler: slow(clock, 600_000) });
    await publish(...Array.from({ length: 20 }, (_, index) => ({ id: `e${index}` })));
    await clock.advance('100ms');
    expect(orders.state().running).toBe(2);
    await topicControls(broker, 'orders').concurrency(7, act);
    await clock.advance('5s');
    expect(orders.state().running).toBe(7);
  });

  test('large events are leased a few at a time, and none waits for a poll', async () => {
    const { clock, open, publish, handled } = stage();
    let inHand = 0;
    let most = 0;
    await open({
      concurrency: 50,
      bytesMax: 5000,
      handler: async () => {
        inHand += 1;
        most = Math.max(most, inHand);
        await scripted(clock, after(10, 1))();
        inHand -= 1;
      },
    });
    await publish(
      ...Array.from({ length: 60 }, (_, index) => ({ id: `${index}`, payload: 'x'.repeat(1000) })),
    );
    await clock.advance('900ms');
    expect([handled.length, most]).toEqual([60, 5]);
  });

  test('retries have a share, and do not starve first tries', async () => {
    const { clock, open, publish } = stage();
    const seen: string[] = [];
    await open({
      concurrency: 4,
      retriesShare: 0.25,
      policy: { attempts: 100, backoff: { base: '5ms', cap: '5ms', jitter: 'none' } },
      handler: async (event) => {
        if (event.id.startsWith('bad')) throw down();
        seen.push(event.id);
        await scripted(clock, after('10ms', 1))();
      },
    });
    await publish(...Array.from({ length: 12 }, (_, index) => ({ id: `bad${index}` })));
    await clock.advance('50ms');
    await publish(...Array.from({ length: 8 }, (_, index) => ({ id: `good${index}` })));
    await clock.advance('200ms');
    expect(seen.length).toBe(8);
  });
});

describe('order by key', () => {
  test('later events of a failing key wait behind it, and other keys flow', async () => {
    const { clock, open, publish, handled } = stage();
    await open({
      ordering: 'key',
      policy: { backoff: { base: '1s', jitter: 'none' } },
      handler: ({ id, attempt }) => {
        if (id === 'a1' && attempt < 3) throw down();
      },
    });
    await publish(
      { id: 'a1', key: 'a' },
      { id: 'a2', key: 'a' },
      { id: 'b1', key: 'b' },
      { id: 'a3', key: 'a' },
    );
    await clock.advance('500ms');
    expect(handled).toEqual(['a1', 'b1']);
    await clock.advance('10s');
    expect(handled).toEqual(['a1', 'b1', 'a1', 'a1', 'a2', 'a3']);
  });

  test('the next handler of a key finds what the one before it committed', async () => {
    const { clock, storage, open, publish } = stage();
    await open({
      ordering: 'key',
      handler: ({ id }) => {
        const before = storage.effects.get('row') ?? '';
        return commit((tx) => tx.put('row', `${before}${id}`));
      },
    });
    await publish(...['1', '2', '3', '4', '5'].map((id) => ({ id, key: 'k' })));
    await clock.advance('1s');
    expect(storage.effects.get('row')).toBe('12345');
  });

  test('and does not run when that commit fails', async () => {
    const { clock, open, publish, handled } = stage();
    await open({
      ordering: 'key',
      policy: { backoff: { base: '1s', jitter: 'none' } },
      handler: ({ id, attempt }) =>
        commit((tx) => {
          if (id === '1' && attempt === 1) throw new ConflictError('row 1 has changed');
          tx.put(id, '');
        }),
    });
    await publish({ id: '1', key: 'k' }, { id: '2', key: 'k' });
    await clock.advance('100ms');
    expect(handled).toEqual(['1']);
    await clock.advance('10s');
    expect(handled).toEqual(['1', '1', '2']);
  });

  test('after holdFor they need not wait any longer', async () => {
    const { clock, open, publish, handled } = stage();
    await open({
      ordering: 'key',
      holdFor: '3s',
      policy: { attempts: 10, backoff: { base: '2s', factor: 1, jitter: 'none' } },
      handler: ({ id, attempt }) => {
        if (id === '1' && attempt < 5) throw down();
      },
    });
    await publish({ id: '1', key: 'k' }, { id: '2', key: 'k' });
    await clock.advance('1s');
    expect(handled).toEqual(['1']);
    await clock.advance('2s');
    expect(handled).toEqual(['1', '1', '2']);
    await clock.advance('1m');
    expect(handled.filter((id) => id === '1').length).toBe(5);
  });

  test.each([
    ['release', ['1', '2', '3']],
    ['block', ['1']],
  ] as const)('a parked event may %s its key', async (parkedKeys, expected) => {
    const { clock, broker, open, publish, handled } = stage();
    await open({ ordering: 'key', parkedKeys, handler: ({ id }) => (id === '1' ? park('bad') : undefined) });
    await publish({ id: '1', key: 'k' }, { id: '2', key: 'k' }, { id: '3', key: 'k' });
    await clock.advance('1s');
    expect(handled).toEqual(expected);
    if (parkedKeys === 'block') {
      await broker.unblock('orders', ['1'], act);
      await clock.advance('1s');
      expect(handled).toEqual(['1', '2', '3']);
    }
  });
});

describe('leases', () => {
  test('are renewed while a handler runs', async () => {
    const { clock, open, publish, handled, left } = stage();
    await open({ lease: '3s', handler: slow(clock, 20_000) });
    await publish({ id: 'a' });
    await clock.advance('19s');
    expect(await left()).toEqual(['a leased']);
    await clock.advance('2s');
    expect([handled, await left()]).toEqual([['a'], []]);
  });

  test('a lost lease aborts the signal, and its late result changes nothing', async () => {
    const { clock, storage, open, publish, left } = stage();
    const reasons: unknown[] = [];
    const orders = await open({
      lease: '3s',
      concurrency: 1,
      handler: async ({ signal, id, attempt, delivery }) => {
        if (delivery.deaths > 0) return undefined;
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        await scripted(clock, after('10s', 1))();
        return commit((tx) => tx.put(id, `attempt ${attempt}`));
      },
    });
    await publish({ id: 'a' });
    await clock.advance('100ms');
    // Another process takes this one for dead.
    const row = storage.topics.get('orders')!.rows.get('a')!;
    row.lease = undefined;
    row.suspect = true;
    row.deaths = 1;
    await clock.advance('5s');
    expect(reasons).toEqual([expect.any(LeaseLostError)]);
    await clock.advance('1m');
    expect(storage.effects.size).toBe(0);
    expect(await left()).toEqual([]);
    expect(orders.state().counters).toMatchObject({ leasesLost: 1, succeeded: 1 });
  });
});

test('a store that never answers ends leases, too', async () => {
  const { clock, broker, open, publish } = stage();
  const reasons: unknown[] = [];
  const orders = await open({
    lease: '3s',
    handler: async ({ signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      await scripted(clock, after('30s', 1))();
    },
  });
  await publish({ id: 'a' });
  await clock.advance('100ms');
  Object.assign(broker, { extend: () => new Promise<never>(() => {}) });
  await clock.advance('2500ms');
  expect(reasons).toEqual([]);
  await clock.advance('2s');
  expect(reasons).toEqual([expect.any(LeaseLostError)]);
  expect(orders.state().counters.leasesLost).toBe(1);
});

test('what waits behind an event whose lease was lost is given back, not run in its stead', async () => {
  const { clock, storage, open, publish, handled } = stage();
  await open({ ordering: 'key', lease: '3s', handler: slow(clock, 30_000) });
  await publish({ id: '1', key: 'k' }, { id: '2', key: 'k' });
  await clock.advance('100ms');
  const row = storage.topics.get('orders')!.rows.get('1')!;
  row.lease = { token: 'of another', owner: 'another', endsAt: clock.epochMs() + 20_000 };
  await clock.advance('15s');
  expect(handled).toEqual(['1']);
  expect(storage.topics.get('orders')!.rows.get('2')?.lease).toBe(undefined);
});

describe('suspects', () => {
  test('are left to other processes when a handler takes long, and other events are handled', async () => {
    const { clock, storage, open, publish, handled } = stage();
    await open({
      concurrency: 2,
      lease: '3s',
      handler: ({ id }) => (id === 'long' ? slow(clock, 60_000)(undefined as never) : undefined),
    });
    await publish({ id: 'long' }, { id: 'suspect' });
    const row = storage.topics.get('orders')!.rows.get('suspect')!;
    Object.assign(row, { suspect: true, deaths: 1, lease: undefined });
    await clock.advance('100ms');
    expect(handled).toEqual(['long']);
    await publish({ id: 'a' });
    await clock.advance('10s');
    expect(handled).toEqual(['long', 'a']);
    await clock.advance('2m');
    expect(handled).toEqual(['long', 'a', 'suspect']);
  });
});

test('drainOnSignals stops consumers when the process is asked to end', async () => {
  const { clock, open, publish, handled, left } = stage();
  const orders = await open({ concurrency: 1, handler: slow(clock, 1000) });
  await publish({ id: 'a' }, { id: 'b' });
  await clock.advance('100ms');
  const drained = new Promise((then) => drainOnSignals([orders], { signals: ['SIGUSR2'], then }));
  process.emit('SIGUSR2', 'SIGUSR2');
  await clock.advance('2s');
  expect(await drained).toBe('SIGUSR2');
  expect([handled, await left()]).toEqual([['a'], ['b ready']]);
  expect(process.listenerCount('SIGUSR2')).toBe(0);
});

describe('stop', () => {
  test('waits for what runs, and gives back what was not begun', async () => {
    const { clock, open, publish, handled, left } = stage();
    const orders = await open({ concurrency: 1, handler: slow(clock, 1000) });
    await publish({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await clock.advance('100ms');
    const stopping = orders.stop();
    await clock.advance('1s');
    await stopping;
    expect(handled).toEqual(['a']);
    expect(await left()).toEqual(['b ready', 'c ready']);
    expect(orders.state()).toMatchObject({ status: 'stopped', running: 0, queued: 0 });
  });

  test('tells handlers that take too long, and gives back what still runs', async () => {
    const { clock, open, publish, left } = stage();
    const told: string[] = [];
    const orders = await open({
      handler: async ({ id, signal }) => {
        signal.addEventListener('abort', () => told.push(id));
        await (id === 'deaf'
          ? new Promise(() => {})
          : new Promise((_, reject) => signal.addEventListener('abort', reject)));
      },
    });
    await publish({ id: 'deaf' }, { id: 'good' });
    await clock.advance('100ms');
    const stopping = orders.stop({ grace: '5s' });
    await clock.advance('4s');
    expect(told).toEqual([]);
    await clock.advance('10s');
    await stopping;
    expect(told.sort()).toEqual(['deaf', 'good']);
    expect(await left()).toEqual(['deaf ready', 'good ready']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('leaves nothing behind: no timer, no listener, no claim', async () => {
    const { clock, storage, open, publish, left } = stage();
    const orders = await open();
    await publish({ id: 'a' });
    await clock.advance('1s');
    await orders.stop();
    await publish({ id: 'b' });
    await clock.advance('1m');
    expect(await left()).toEqual(['b ready']);
    expect([clock.pendingTimers, storage.doorbells.get('orders')?.size]).toEqual([0, 0]);
    await orders.stop();
  });

  test('a start that failed can be tried again, and be stopped', async () => {
    let isAway = true;
    const { engine, clock } = stage({
      beforeWrite: () => {
        if (isAway) throw new Error('the store is away');
      },
    });
    const orders = consumer({ engine, topic: 'orders', clock, handler: () => {} });
    await expect(orders.start()).rejects.toThrow('the store is away');
    isAway = false;
    await orders.start();
    expect(orders.state().status).toBe('running');
    await orders.stop();
    isAway = true;
    const other = consumer({ engine, topic: 'orders', clock, handler: () => {} });
    const starting = expect(other.start()).rejects.toThrow('the store is away');
    await other.stop();
    await starting;
    expect(other.state().status).toBe('stopped');
  });

  test('resolves at once for a consumer that never started', async () => {
    const { engine, clock } = stage();
    const orders = consumer({ engine, topic: 'orders', clock, handler: () => {} });
    await orders.stop();
    expect(orders.state().status).toBe('stopped');
  });
});

describe('what it depends on', () => {
  test('half-open, never more at once than there are probes', async () => {
    const { clock, open, publish } = stage();
    const name = 'stock of the flow test';
    const stock = policy(
      {
        name,
        attempts: 1,
        retryOn: 'any',
        attemptTimeout: 'none',
        breaker: { openFor: '1s', probes: 2, slow: false },
      },
      { clock, random: () => 1 },
    );
    for (let call = 0; call < 5; call++) await stock.try(() => Promise.reject(down()));
    let [running, most] = [0, 0];
    const orders = await open({
      dependsOn: [name],
      handler: async () => {
        // It does something else before it asks.
        await scripted(clock, after('50ms', 1))();
        if (breakerOf(name)?.isClosed) return;
        running += 1;
        most = Math.max(most, running);
        await stock.run(scripted(clock, after('100ms', 1))).finally(() => {
          running -= 1;
        });
      },
    });
    await publish(...Array.from({ length: 20 }, (_, index) => ({ id: `e${index}` })));
    await clock.advance('500ms');
    expect(orders.state()).toMatchObject({ status: 'dependency_down', counters: { attempts: 0 } });
    await clock.advance('1m');
    expect([most, orders.state().counters.succeeded]).toEqual([2, 20]);
  });

  test('nothing is claimed while a breaker is open, and one at a time to find out', async () => {
    const { clock, open, publish, handled, left } = stage();
    const name = 'payment of the flow test';
    const payment = policy(
      { name, attempts: 1, retryOn: 'any', breaker: { openFor: '10s', probes: 3 } },
      { clock, random: () => 1 },
    );
    await payment.try(() => 1);
    let isUp = false;
    const orders = await open({
      dependsOn: [name],
      concurrency: 2,
      handler: () =>
        payment.run(async () => {
          if (!isUp) throw down();
        }),
    });
    await publish(...Array.from({ length: 30 }, (_, index) => ({ id: `e${index}` })));
    await clock.advance('2s');
    const before = handled.length;
    expect(breakerOf(name)?.state(clock.now())).toBe('open');
    expect(before).toBeLessThan(15);
    expect(orders.state()).toMatchObject({ status: 'dependency_down', running: 0, counters: { parked: 0 } });
    await clock.advance('7s');
    expect(handled.length).toBe(before);
    isUp = true;
    await clock.advance('10m');
    expect(await left()).toEqual([]);
    expect(orders.state().counters).toMatchObject({ succeeded: 30, parked: 0 });
  });

  test('a call that our own breaker refuses costs no attempt', async () => {
    const { clock, open, publish, handled } = stage();
    const payment = policy(
      { attempts: 1, retryOn: 'any', breaker: { openFor: '60s' } },
      { clock, random: () => 1 },
    );
    for (let call = 0; call < 5; call++) await payment.try(() => Promise.reject(down()));
    const orders = await open({ policy: { attempts: 1 }, handler: () => payment.run(() => {}) });
    await publish({ id: 'a' });
    await clock.advance('30s');
    expect(handled).toEqual(['a']);
    expect(orders.state().counters).toMatchObject({ snoozed: 1, parked: 0 });
    await clock.advance('5m');
    expect(orders.state().counters).toMatchObject({ succeeded: 1, parked: 0 });
  });
});

describe('controls', () => {
  test('pause and resume', async () => {
    const { clock, broker, open, publish, handled } = stage();
    const controls = topicControls(broker, 'orders');
    await open();
    await controls.pause(act);
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(handled).toEqual([]);
    expect(await controls.active()).toMatchObject([{ control: { kind: 'pause' }, act }]);
    expect(await controls.resume(act)).toBe(true);
    await clock.advance('1s');
    expect(handled).toEqual(['a']);
  });

  test('quarantine a tenant while the rest flows, and let it go', async () => {
    const { clock, broker, open, publish, handled } = stage();
    const controls = topicControls(broker, 'orders');
    await open();
    await controls.quarantine({ tenant: 'acme' }, act);
    await publish({ id: 'a', tenant: 'acme' }, { id: 'b', tenant: 'other' });
    await clock.advance('1m');
    expect(handled).toEqual(['b']);
    await controls.release({ tenant: 'acme' }, act);
    await clock.advance('1s');
    expect(handled).toEqual(['b', 'a']);
  });

  test('skip parks one event, reroute sends a type elsewhere', async () => {
    const { clock, broker, open, publish, handled, parked } = stage();
    const controls = topicControls(broker, 'orders');
    await broker.declare('slow');
    await open();
    await controls.skip('a', act);
    await controls.reroute('slow', act, 'big');
    await publish({ id: 'a' }, { id: 'b', type: 'big' }, { id: 'c' });
    await clock.advance('1s');
    expect(handled).toEqual(['c']);
    expect((await parked('a'))?.diagnosis.stop).toBe('skipped');
    expect((await broker.waiting('slow', { limit: 9 })).items).toMatchObject([{ id: 'b' }]);
    await expect(controls.reroute('orders', act)).rejects.toThrow(
      'to: expected another topic than this one, got "orders"',
    );
    await expect(controls.concurrency(0, act)).rejects.toThrow(
      'concurrencyMax: expected a whole number from 1',
    );
  });
});

describe('a handler', () => {
  test('hands patience, key and signal on to what it calls', async () => {
    const { clock, open, publish } = stage();
    const seen: unknown[] = [];
    await open({
      handler: async ({ signal }) => {
        await Promise.resolve();
        const around = ambientContext();
        seen.push([around?.idempotencyKey, around?.patienceEndsAt, around?.signal === signal]);
      },
    });
    await publish({ id: 'a', patienceMs: 5000, idempotencyKey: 'key of a' }, { id: 'b' });
    await clock.advance('1s');
    expect(seen).toEqual([
      ['key of a', 5000, true],
      ['b', Infinity, true],
    ]);
    expect(ambientContext()).toBe(undefined);
  });

  test('knows how long the customer will wait', async () => {
    const { clock, open, publish } = stage();
    const seen: unknown[] = [];
    await open({
      handler: ({ patienceLeft, deadline }) =>
        void seen.push([patienceLeft, (deadline ?? Infinity) - clock.epochMs()]),
    });
    await publish({ id: 'a', patienceMs: 5000 }, { id: 'b' });
    await clock.advance('1s');
    expect(seen).toEqual([
      [5000, 5000],
      [Infinity, Infinity],
    ]);
  });

  test('gets an aborted signal when its time is over', async () => {
    const { clock, open, publish, parked } = stage();
    await open({
      attemptTimeout: '2s',
      policy: { attempts: 1 },
      handler: ({ signal }) =>
        new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    await publish({ id: 'timeout' }, { id: 'patience', patienceMs: 1000 });
    await clock.advance('1m');
    expect((await parked('timeout'))?.diagnosis).toMatchObject({
      reason: 'HOLDFAST_ATTEMPT_TIMEOUT',
      stop: 'attempts_exhausted',
    });
    expect((await parked('patience'))?.diagnosis).toMatchObject({ reason: 'HOLDFAST_PATIENCE_SPENT' });
    expect(clock.pendingTimers).toBeLessThan(3);
  });
});

test('where no doorbell rings it looks often while there is something, and seldom while there is not', async () => {
  const { clock, engine, broker, publish } = stage();
  const features = { ...engine.features, doorbell: missing('nobody there to ring') };
  broker.doorbell = () => () => {};
  let looks = 0;
  const lease = broker.lease.bind(broker);
  broker.lease = (...args) => {
    looks += 1;
    return lease(...args);
  };
  const handledAt: number[] = [];
  const orders = consumer({
    ...{ engine: { ...engine, features }, topic: 'orders', clock },
    handler: () => void handledAt.push(clock.now()),
  });
  await orders.start();
  await clock.advance('10m');
  expect(looks).toBeLessThan(650);
  const latencies: number[] = [];
  for (const id of ['after a rest', 'soon after', 'soon after that']) {
    const from = clock.now();
    await publish({ id });
    for (let step = 0; handledAt.length <= latencies.length && step < 2000; step++) await clock.advance(1);
    latencies.push(handledAt.at(-1)! - from);
  }
  expect(latencies[0]).toBeGreaterThan(100);
  for (const latency of latencies.slice(1)) expect(latency).toBeLessThan(50);
  await orders.stop();
});

describe('a store that fails', () => {
  test('is asked again, and nothing is lost', async () => {
    let failures = 0;
    const { clock, open, publish, left } = stage({
      beforeWrite: () => {
        if (failures > 0 && failures-- % 2 === 0) throw new Error('disk is full');
      },
    });
    const heard: string[] = [];
    onTestFinished(subscribeEvents((notice) => notice.type === 'store_failed' && heard.push(notice.what)));
    const orders = await open();
    await publish(...Array.from({ length: 25 }, (_, index) => ({ id: `e${index}` })));
    failures = 9;
    await clock.advance('1m');
    expect(await left()).toEqual([]);
    // What took effect before the store failed is answered as lost when it is settled again.
    const { succeeded, leasesLost, attempts } = orders.state().counters;
    expect([succeeded + leasesLost, attempts]).toEqual([25, 25]);
    expect(heard).toEqual(expect.arrayContaining(['lease', 'settle']));
  });
});

test('reports everything that happens to listeners', async () => {
  const { clock, open, publish } = stage();
  const types: string[] = [];
  onTestFinished(subscribeEvents(({ type }) => types.push(type)));
  const onChannel: unknown[] = [];
  const hear = (message: unknown) => void onChannel.push((message as { type: string }).type);
  diagnostics.subscribe('holdfast:event', hear);
  onTestFinished(() => void diagnostics.unsubscribe('holdfast:event', hear));
  const orders = await open({
    handler: ({ id, attempt }) => {
      if (id === 'a' && attempt === 1) throw down();
      return id === 'b' ? park('no') : undefined;
    },
  });
  await publish({ id: 'a' }, { id: 'b' });
  await clock.advance('10s');
  await orders.stop();
  expect(onChannel).toEqual(types);
  const told = types.filter((type) => type !== 'leased');
  expect(told).toEqual([
    ...['status', 'begun', 'begun', 'retry', 'parked', 'settling', 'settled'],
    ...['begun', 'succeeded', 'settling', 'settled', 'status', 'status'],
  ]);
});

describe('what a handler does to consumers does not inherit its context', () => {
  test('a doorbell that it rings hands its patience, key and signal to no other event', async () => {
    const { clock, engine, broker, open, publish } = stage();
    await broker.declare('mails');
    const seen: unknown[] = [];
    const mails = consumer({
      engine,
      topic: 'mails',
      clock,
      ambient: false,
      handler: () => void seen.push(ambientContext()),
    });
    await mails.start();
    await clock.advance('1s');
    await open({ handler: () => void broker.publish('mails', [{ id: 'm', payload: '{}' }]) });
    await publish({ id: 'a', patienceMs: 5000 });
    await clock.advance('1s');
    expect(seen).toEqual([undefined]);
    const stopping = mails.stop();
    await clock.advance('1s');
    await stopping;
  });

  test('an event whose handler awaits the stop of its own consumer is returned', async () => {
    const { clock, open, publish, left } = stage();
    const orders: Consumer = await open({ grace: '1s', handler: () => orders.stop() as never });
    await publish({ id: 'a' });
    await clock.advance('10s');
    expect(orders.state().status).toBe('stopped');
    expect(await left()).toEqual(['a ready']);
  });
});
