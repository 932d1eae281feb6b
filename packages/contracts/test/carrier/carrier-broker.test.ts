import {
  advanceOperation,
  type Delivery,
  defaultReplay,
  type Engine,
  errorNote,
  type Settlement,
} from '@holdfast/contracts';
import { type Carrier, carrierEngine } from '@holdfast/contracts/carrier';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import fc from 'fast-check';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { channelTraits, queueTraits } from './carrier-harness.ts';
import { type CarrierTraits, type FaultCall, MessageServer } from './message-server.ts';

const error = errorNote(new Error('no'));
const act = { who: 'ada', why: 'a test' };

interface SetupOptions {
  readonly traits?: CarrierTraits;
  readonly hasStore?: boolean;
  readonly prefetchMax?: number;
  readonly prefetchBytesMax?: number;
  readonly parkedSuffix?: string;
}

function setup(options: SetupOptions = {}) {
  const { traits = channelTraits, hasStore = false, ...rest } = options;
  const clock = virtualClock();
  const server = new MessageServer(clock);
  const storage = new MemoryStorage();
  const faults: { call: FaultCall; phase: 'before' | 'after' }[] = [];
  const fault = (call: FaultCall, phase: 'before' | 'after') => {
    const at = faults.findIndex((each) => each.call === call && each.phase === phase);
    if (at < 0) return;
    faults.splice(at, 1);
    throw new Error(`${call}: the answer is lost ${phase}`);
  };
  let processes = 0;
  function open(): { engine: Engine; carrier: Carrier } {
    const random = seededRandom('process', processes++);
    const carrier = server.connect({ ...traits, fault });
    const store = hasStore ? memoryEngine({ clock, random, storage }) : undefined;
    const engine = carrierEngine(carrier, { ...rest, store, clock, random, durability: 'process' });
    return { engine, carrier };
  }
  const { engine, carrier } = open();
  return { clock, server, faults, open, engine, carrier, broker: engine.broker!, storage };
}

type Setup = ReturnType<typeof setup>;

async function take({ broker }: Pick<Setup, 'broker'>, limit = 10, leaseMs = 60_000, topic = 'orders') {
  const { deliveries } = await broker.lease(topic, { owner: 'w', limit, leaseMs });
  return deliveries;
}

async function publish({ broker }: Pick<Setup, 'broker'>, payloads: readonly string[], rest: object = {}) {
  await broker.declare('orders');
  await broker.publish(
    'orders',
    payloads.map((payload) => ({ payload, ...rest })),
  );
}

const ack = ({ lease }: Delivery): Settlement => ({ lease, kind: 'ack' });
const retry = ({ lease }: Delivery, delayMs = 0): Settlement => ({
  lease,
  kind: 'retry',
  delayMs,
  error,
  story: [],
});
const park = ({ lease }: Delivery): Settlement => ({ lease, kind: 'park', stop: 'poison', error, story: [] });
const payloadsOf = (deliveries: readonly Delivery[]) => deliveries.map(({ payload }) => payload);

describe('a settlement whose answer is lost', () => {
  test.each<{ call: FaultCall; phase: 'before' | 'after'; hasStore: boolean }>([
    { call: 'send', phase: 'before', hasStore: false },
    { call: 'send', phase: 'after', hasStore: false },
    { call: 'done', phase: 'before', hasStore: false },
    { call: 'done', phase: 'after', hasStore: false },
    { call: 'done', phase: 'before', hasStore: true },
    { call: 'done', phase: 'after', hasStore: true },
  ])('is repeated: $call, $phase, store: $hasStore', async ({ call, phase, hasStore }) => {
    const own = setup({ hasStore });
    await publish(own, ['a']);
    const [held] = await take(own);
    own.faults.push({ call, phase });
    await expect(own.broker.settle([retry(held!)])).rejects.toThrow('the answer is lost');
    expect(await own.broker.settle([retry(held!)])).toMatchObject([{ took: true }]);
    expect(await own.broker.settle([retry(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    await own.clock.advance(1);
    const copies = await take(own);
    expect(copies).toMatchObject([{ payload: 'a', attempt: 2 }]);
    await own.broker.settle(copies.map(ack));
    // A retry whose own answer was lost may be there twice. What was answered is not written again.
    expect(await take(own)).toHaveLength(call === 'send' && phase === 'after' ? 1 : 0);
  });
});

describe('a lease', () => {
  test('is lost with its message, and the message comes again', async () => {
    const own = setup();
    await publish(own, ['a']);
    const [held] = await take(own);
    own.server.revoke(own.carrier);
    expect(await own.broker.extend([held!.lease], 1000)).toEqual([false]);
    expect(await own.broker.settle([ack(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    expect(payloadsOf(await take(own))).toEqual(['a']);
  });

  test('is refused by a server that has given the message to another process', async () => {
    const own = setup();
    await publish(own, ['a']);
    const [held] = await take(own);
    const refusing = own.carrier.done;
    Object.assign(own.carrier, { done: async (handles: readonly unknown[]) => handles.map(() => false) });
    expect(await own.broker.settle([ack(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    Object.assign(own.carrier, { done: refusing });
  });

  test('ends by the own clock before the server gives the message away', async () => {
    const own = setup({ traits: { ...queueTraits, holdMs: 1000 } });
    await publish(own, ['a']);
    const [held] = await take(own);
    const other = own.open().engine.broker!;
    // The process cannot reach the server any more.
    own.faults.push(...Array.from({ length: 9 }, () => ({ call: 'keep', phase: 'before' }) as const));
    await own.clock.advance(950);
    expect(await take({ broker: other })).toEqual([]);
    expect(await own.broker.settle([ack(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    own.server.kill(own.carrier);
    await own.clock.advance(50);
    expect(payloadsOf(await take({ broker: other }))).toEqual(['a']);
  });

  test.each(['key', 'none'] as const)(
    'has one copy of an event at a time, so that the ledger knows the second one: ordering %s',
    async (ordering) => {
      const own = setup({ hasStore: true });
      await own.broker.declare('orders', { ordering });
      const event = { id: 'e1', payload: 'a', key: 'k' };
      await own.broker.publish('orders', [event]);
      await own.broker.publish('orders', [event, { id: 'e2', payload: 'b', key: 'k' }]);
      const request = { owner: 'w', limit: 10, leaseMs: 60_000, runMax: 10 };
      const first = (await own.broker.lease('orders', request)).deliveries;
      expect(first.map(({ id }) => id).filter((id) => id === 'e1')).toEqual(['e1']);
      expect((await own.broker.lease('orders', request)).deliveries).toEqual([]);
      await own.broker.settle(first.map(ack));
      const { deliveries } = await own.broker.lease('orders', request);
      expect(deliveries.map(({ id }) => id)).toEqual(ordering === 'key' ? ['e1', 'e2'] : ['e1']);
    },
  );

  test('lasts as long as its consumer extends it, however short the server keeps a message', async () => {
    const own = setup({ traits: { ...queueTraits, holdMs: 100 } });
    await publish(own, ['a']);
    const [held] = await take(own, 1, 1000);
    const other = own.open().engine.broker!;
    for (let beats = 0; beats < 5; beats++) {
      await own.clock.advance(900);
      expect(await take({ broker: other })).toEqual([]);
      expect(await own.broker.extend([held!.lease], 1000)).toEqual([true]);
    }
    expect(await own.broker.settle([ack(held!)])).toMatchObject([{ took: true }]);
    expect(own.server.messages('orders')).toEqual([]);
  });

  test('belongs to the process that made it', async () => {
    const own = setup({ hasStore: true });
    await publish(own, ['a']);
    const [held] = await take(own);
    const other = own.open().engine.broker!;
    expect(await other.settle([ack(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    expect(await other.extend([held!.lease], 1000)).toEqual([false]);
  });
});

describe('prefetching', () => {
  const inMemory = async (own: Setup) => {
    const { delivered } = await own.carrier.counts('orders');
    return delivered;
  };

  test('stops at its limit, however large a lease', async () => {
    const own = setup({ prefetchMax: 8 });
    await publish(
      own,
      Array.from({ length: 30 }, () => 'a'),
    );
    expect(await take(own, 5)).toHaveLength(5);
    await own.clock.advance(1);
    expect(await inMemory(own)).toBe(5 + 8);
  });

  test('stops at its bytes', async () => {
    const own = setup({ prefetchBytesMax: 10 });
    await publish(
      own,
      Array.from({ length: 30 }, () => 'a'.repeat(20)),
    );
    await take(own, 2);
    const fetched = await inMemory(own);
    await take(own, 1);
    await own.clock.advance(1);
    expect(await inMemory(own)).toBe(fetched);
  });

  test('brings first attempts while retries fill their places', async () => {
    const own = setup({ prefetchMax: 4 });
    await publish(own, ['a', 'b', 'c', 'd']);
    for (const each of await take(own, 4)) await own.broker.settle([retry(each, 10)]);
    await own.broker.controls.impose({ kind: 'pause', topic: 'orders', only: 'retries' }, act);
    await own.clock.advance(20);
    expect(await take(own, 6)).toEqual([]);
    await publish(own, ['fresh']);
    expect(payloadsOf(await take(own, 6))).toEqual(['fresh']);
  });

  test('stops while the topic is paused', async () => {
    const own = setup();
    await own.broker.declare('orders');
    await own.broker.controls.impose({ kind: 'pause', topic: 'orders' }, act);
    own.broker.doorbell('orders', () => {});
    await take(own);
    await publish(own, ['a']);
    await own.clock.advance(1);
    expect(await take(own)).toEqual([]);
    expect(await inMemory(own)).toBe(0);
  });

  test('ends when nobody leases any more, and others get what was fetched', async () => {
    const own = setup({ traits: queueTraits });
    await publish(own, ['a', 'b', 'c']);
    const [held] = await take(own, 1);
    await own.broker.settle([ack(held!)]);
    const other = own.open().engine.broker!;
    expect(await take({ broker: other })).toEqual([]);
    await own.clock.advance(31_000);
    expect(payloadsOf(await take({ broker: other }))).toEqual(['b', 'c']);
  });

  test('goes on while somebody listens to the doorbell', async () => {
    const own = setup({ traits: queueTraits });
    await own.broker.declare('orders');
    let rings = 0;
    const off = own.broker.doorbell('orders', () => {
      rings += 1;
    });
    await own.clock.advance(60_000);
    await publish(own, ['a']);
    await own.clock.advance(1);
    expect(rings).toBeGreaterThan(0);
    off();
  });
});

describe('an event that comes before it is due', () => {
  test('waits in the process if the server cannot take it back, and rings when it is due', async () => {
    const own = setup({ traits: { later: false } });
    // This server delivers delayed messages at once.
    const { send } = own.carrier;
    Object.assign(own.carrier, {
      send: (topic: string, queue: 'hot' | 'retry', messages: Parameters<typeof send>[2]) =>
        send(
          topic,
          queue,
          messages.map((message) => ({ ...message, delayMs: 0 })),
        ),
    });
    await publish(own, ['second'], { delayMs: 2000 });
    await publish(own, ['first'], { delayMs: 1000 });
    let rings = 0;
    own.broker.doorbell('orders', () => {
      rings += 1;
    });
    const { deliveries, nextDueInMs } = await own.broker.lease('orders', {
      owner: 'w',
      limit: 9,
      leaseMs: 1,
    });
    expect(deliveries).toEqual([]);
    expect(nextDueInMs).toBe(1000);
    rings = 0;
    await own.clock.advance(1000);
    expect(rings).toBe(1);
    expect(payloadsOf(await take(own))).toEqual(['first']);
    await own.clock.advance(1000);
    expect(payloadsOf(await take(own))).toEqual(['second']);
  });
});

describe('without a store', () => {
  test('key order, quarantine and settled events are refused by name', async () => {
    const own = setup();
    await expect(own.broker.declare('orders', { ordering: 'key' })).rejects.toMatchObject({
      code: 'HOLDFAST_FEATURE_MISSING',
      message: expect.stringContaining('ordering: a retry leaves its place in the queue'),
    });
    const quarantine = { kind: 'quarantine', topic: 'orders', tenant: 'acme' } as const;
    await expect(own.broker.controls.impose(quarantine, act)).rejects.toMatchObject({
      code: 'HOLDFAST_FEATURE_MISSING',
    });
    await publish(own, ['a']);
    await expect(own.broker.waiting('orders', { limit: 1 })).rejects.toThrow('waitingList');
    await expect(own.broker.unblock('orders', ['a'], act)).rejects.toThrow('parkedHoldsKey');
    await expect((async () => own.broker.publishWithin({}, 'orders', []))()).rejects.toThrow(
      'sharedTransaction',
    );
    const [held] = await take(own);
    const [settled] = await own.broker.settle([{ lease: held!.lease, kind: 'ack', commit: () => {} }]);
    expect(settled).toMatchObject({ because: 'commit_failed', error: { feature: 'sharedTransaction' } });
  });

  test('parked events go to the dead-letter topic, with headers that people know', async () => {
    const own = setup({ parkedSuffix: '.dead' });
    await publish(own, ['bad'], { headers: { 'x-trace': 'abc' }, key: 'k', patienceMs: 5 });
    await own.broker.settle([retry((await take(own))[0]!)]);
    await own.clock.advance(10);
    await own.broker.settle([park((await take(own))[0]!)]);
    expect(own.server.messages('orders.dead')[0]?.message.headers).toMatchObject({
      ...{ 'retry-attempt': '1', 'origin-topic': 'orders', 'dlq-reason': 'Error', 'dlq-message': 'no' },
      ...{ 'dlq-stop': 'poison', 'final-attempt': '2', 'x-trace': 'abc', 'event-key': 'k' },
    });
    const [parked] = await take(own, 1, 1000, 'orders.dead');
    // Whoever collects it counts its own attempts, and its patience does not matter any more.
    expect(parked).toMatchObject({ attempt: 1, patienceLeftMs: Infinity, diagnosis: { finalAttempt: 2 } });
    await own.broker.settle([retry(parked!)]);
    await own.clock.advance(1);
    const [again] = await take(own, 1, 1000, 'orders.dead');
    expect(again).toMatchObject({ attempt: 2, diagnosis: { stop: 'poison' } });
    await own.broker.settle([park(again!)]);
    expect(await own.broker.topics()).toEqual(['orders', 'orders.dead']);
    expect(own.server.messages('orders.dead')).toHaveLength(1);
  });

  test('retries have their share, and first attempts the rest', async () => {
    const own = setup();
    await publish(
      own,
      Array.from({ length: 10 }, () => 'retry'),
    );
    await own.broker.settle((await take(own)).map((delivery) => retry(delivery)));
    await publish(
      own,
      Array.from({ length: 10 }, () => 'first'),
    );
    const request = { owner: 'w', limit: 4, leaseMs: 1000, retriesShare: 0.25 };
    const { deliveries } = await own.broker.lease('orders', request);
    expect(payloadsOf(deliveries).toSorted()).toEqual(['first', 'first', 'first', 'retry']);
  });
});

describe('with a store', () => {
  test('an event that is retried leaves the server, and is retried from the store', async () => {
    const own = setup({ hasStore: true });
    await publish(own, ['a']);
    await own.broker.settle([retry((await take(own))[0]!, 500)]);
    expect(own.server.messages('orders')).toEqual([]);
    expect(await own.broker.counts('orders')).toMatchObject({ delayed: 1, ready: 0, leased: 0 });
    expect((await own.broker.waiting('orders', { limit: 9 })).items).toMatchObject([
      { state: 'delayed', attempts: 1 },
    ]);
    await own.clock.advance(500);
    expect(await take(own)).toMatchObject([{ payload: 'a', attempt: 2, topic: 'orders', lastError: error }]);
  });

  test('parked events go to its triage, and a replay that succeeds is told there', async () => {
    const own = setup({ hasStore: true });
    const triage = own.engine.triage!;
    await publish(own, ['bad'], { id: 'e1' });
    await own.broker.settle([park((await take(own))[0]!)]);
    expect(await triage.get('e1')).toMatchObject({ topic: 'orders', status: 'parked', payload: 'bad' });
    expect(await own.broker.topics()).toEqual(['orders']);
    const { id } = await triage.operations.begin(
      { ...defaultReplay, canary: 0, filter: { ids: ['e1'] } },
      act,
    );
    const release = () =>
      advanceOperation(
        triage,
        id,
        own.clock,
        async (topic, events) => void (await own.broker.publish(topic, events)),
      );
    for (let steps = 0; steps < 20 && own.server.messages('orders').length === 0; steps++) await release();
    const [replayed] = await take(own);
    expect(replayed).toMatchObject({ id: 'e1', attempt: 1, replay: id });
    await own.broker.settle([ack(replayed!)]);
    expect(await triage.get('e1')).toMatchObject({ status: 'resolved' });
  });

  test('marks are in its ledger before the event is done', async () => {
    const own = setup({ hasStore: true });
    await publish(own, ['a'], { id: 'e1' });
    const [held] = await take(own);
    own.faults.push({ call: 'done', phase: 'before' });
    await expect(own.broker.settle([{ ...ack(held!), marks: ['view'] }])).rejects.toThrow('lost');
    expect(await own.engine.ledger!.isMarked([{ handler: 'view', eventId: 'e1' }])).toEqual([true]);
  });

  test.each([
    ['before', 'done'],
    ['after', 'done'],
  ] as const)(
    'an event that moves behind its key is there once: the answer is lost %s %s',
    async (phase, call) => {
      const own = setup({ hasStore: true });
      await own.broker.declare('orders', { ordering: 'key' });
      await own.broker.publish(
        'orders',
        ['a1', 'a2'].map((payload) => ({ payload, key: 'a' })),
      );
      await own.broker.settle([retry((await take(own))[0]!, 500)]);
      own.faults.push({ call, phase });
      await expect(take(own)).rejects.toThrow('lost');
      expect(await take(own)).toEqual([]);
      await own.clock.advance(500);
      for (const payload of ['a1', 'a2']) {
        const [head] = await take(own);
        expect(head).toMatchObject({ payload });
        await own.broker.settle([ack(head!)]);
      }
      expect(await take(own)).toEqual([]);
    },
  );
});

type Step =
  | { readonly kind: 'fail'; readonly call: FaultCall; readonly phase: 'before' | 'after' }
  | { readonly kind: 'die' };

describe('whatever fails, and wherever it dies', () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      kind: fc.constant('fail' as const),
      call: fc.constantFrom<FaultCall>('send', 'done', 'keep', 'release', 'look'),
      phase: fc.constantFrom('before', 'after'),
    }),
    fc.constant({ kind: 'die' as const }),
  );

  /** Handles all events: each fails `failures` times, and then succeeds. Returns the ids in the order of their first success. */
  async function handleAll(
    own: Setup,
    steps: readonly Step[],
    failures: number,
    count: number,
  ): Promise<string[]> {
    const effects: string[] = [];
    let { engine, carrier } = { engine: own.engine, carrier: own.carrier };
    const left = [...steps];
    for (let round = 0; round < 400 && effects.length < count; round++) {
      const next = round % 3 === 0 ? left.shift() : undefined;
      if (next?.kind === 'fail') own.faults.push(next);
      if (next?.kind === 'die') {
        own.server.kill(carrier);
        ({ engine, carrier } = own.open());
      }
      const { broker } = engine;
      const request = { owner: 'w', limit: 3, leaseMs: 5000, runMax: 2 };
      const leased = await broker!.lease('orders', request).catch(() => undefined);
      const batch: Settlement[] = [];
      const failed = new Set<string>();
      for (const delivery of leased?.deliveries ?? []) {
        const { id, key = '', attempt, lease } = delivery;
        // As the consumer does: after a failure, later events of the key go back.
        if (failed.has(key)) batch.push({ lease, kind: 'return' });
        else if (attempt <= failures) {
          failed.add(key);
          batch.push(retry(delivery, 100));
        } else {
          if (!effects.includes(id)) effects.push(id);
          batch.push(ack(delivery));
        }
      }
      await broker!.settle(batch).catch(() => {});
      await own.clock.advance(60);
    }
    return effects;
  }

  const ids = Array.from({ length: 12 }, (_, index) => `e${String(index).padStart(2, '0')}`);

  test.each([
    ['a queue', queueTraits],
    ['a channel', channelTraits],
  ])('no event of %s is lost', async (_, traits) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.boolean(), async (steps, hasStore) => {
        const own = setup({ traits, hasStore });
        await own.broker.declare('orders');
        await own.broker.publish(
          'orders',
          ids.map((id) => ({ id, payload: id })),
        );
        const effects = await handleAll(own, steps, 1, ids.length);
        expect(effects.toSorted()).toEqual(ids);
      }),
      { numRuns: 60 },
    );
  });

  test('the order of a key is kept with a store', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.integer({ min: 0, max: 2 }),
        async (steps, failures) => {
          const own = setup({ traits: channelTraits, hasStore: true });
          await own.broker.declare('orders', { ordering: 'key' });
          const keyOf = (id: string) => `k${Number(id.slice(1)) % 3}`;
          await own.broker.publish(
            'orders',
            ids.map((id) => ({ id, payload: id, key: keyOf(id) })),
          );
          const effects = await handleAll(own, steps, failures, ids.length);
          for (const key of ['k0', 'k1', 'k2'])
            expect(effects.filter((id) => keyOf(id) === key)).toEqual(ids.filter((id) => keyOf(id) === key));
        },
      ),
      { numRuns: 60 },
    );
  });
});
