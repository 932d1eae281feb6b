import { type MemoryEngine, MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { type ConsumerOptions, commit, consumer, ExclusiveRun, park } from '@holdfast/events';
import { after, scripted, seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { down } from './stage.ts';

/** Processes that share a store and die. A dead one writes nothing more. */
function world() {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  let processes = 0;

  function boot(
    options: Partial<ConsumerOptions> & Pick<ConsumerOptions, 'handler'>,
    dieAfterWrites = Infinity,
  ) {
    let writesLeft = dieAfterWrites;
    let isDead = false;
    const random = seededRandom('process', ++processes);
    const engine: MemoryEngine = memoryEngine({
      clock,
      storage,
      random,
      beforeWrite: () => {
        isDead ||= writesLeft === 0;
        if (isDead) throw new Error('the process has died');
        writesLeft -= 1;
      },
    });
    const made = consumer({
      ...{ engine, topic: 'orders', lease: '3s', clock, random },
      exclusiveRun: new ExclusiveRun(),
      ...options,
    } as ConsumerOptions);
    return {
      engine,
      consumer: made,
      die: () => {
        isDead = true;
      },
    };
  }

  async function publish(...events: { id: string; key?: string }[]): Promise<void> {
    const { broker } = memoryEngine({ clock, storage });
    await broker.declare('orders');
    await broker.publish(
      'orders',
      events.map((event) => ({ payload: '{}', ...event })),
    );
  }

  /** Where an event is: in the topic, in the parking lot, or done. */
  async function whereIs(id: string): Promise<string> {
    const { broker, triage } = memoryEngine({ clock, storage });
    const { items } = await broker.waiting('orders', { limit: 1000 });
    const places = items.filter((item) => item.id === id).map(({ state }) => state as string);
    if ((await triage.get(id))?.status === 'parked') places.push('parked');
    if (storage.effects.has(id)) places.push('done');
    return places.join(' and ');
  }

  return { clock, storage, boot, publish, whereIs };
}

async function settleDown(clock: VirtualClock): Promise<void> {
  await clock.advance('10m');
}

describe('1. the next state is on record before the previous one is forgotten', () => {
  const outcomes: Record<string, ConsumerOptions['handler']> = {
    done: ({ id }) => commit((tx) => (tx as { put(name: string, value: string): void }).put(id, '')),
    retried: () => {
      throw down();
    },
    parked: () => park('a reason'),
  };

  test.each(Object.keys(outcomes))(
    'an event that is %s is in exactly one place, whichever write is the last',
    async (outcome) => {
      for (let writes = 1; writes <= 6; writes++) {
        const { clock, boot, publish, whereIs } = world();
        await publish({ id: 'a' });
        const dying = boot({ handler: outcomes[outcome]!, policy: { attempts: 2 } }, writes);
        await dying.consumer.start();
        await clock.advance('100ms');
        const place = await whereIs('a');
        expect(place, `after ${writes} writes`).toMatch(/^(ready|leased|suspect|delayed|parked|done)$/);
        dying.die();
        const heir = boot({ handler: outcomes[outcome]!, policy: { attempts: 2 } });
        await heir.consumer.start();
        await settleDown(clock);
        expect(await whereIs('a')).toBe(outcome === 'done' ? 'done' : 'parked');
      }
    },
  );
});

describe('2. every settlement and heartbeat carries the token of its lease, and changes nothing if that moved', () => {
  test('a worker that was thought dead settles nothing', async () => {
    const { clock, storage, boot, publish, whereIs } = world();
    await publish({ id: 'a' });
    const effects: string[] = [];
    const handler =
      (name: string, ms: number): ConsumerOptions['handler'] =>
      async ({ id }) => {
        await scripted(clock, after(ms, 1))();
        return commit((tx) => {
          effects.push(name);
          (tx as { put(name: string, value: string): void }).put(id, name);
        });
      };
    const slow = boot({ handler: handler('slow', 60_000) });
    await slow.consumer.start();
    await clock.advance('100ms');
    // Its heartbeats do not arrive, and then its answer does.
    const away = async () => {
      throw new Error('the network is away');
    };
    Object.assign(slow.engine.broker, { extend: away, lease: away });
    const other = boot({ handler: handler('other', 10) });
    await other.consumer.start();
    await clock.advance('30s');
    await settleDown(clock);
    expect(effects).toEqual(['other']);
    expect([storage.effects.get('a'), await whereIs('a')]).toEqual(['other', 'done']);
    expect(slow.consumer.state().counters).toMatchObject({ leasesLost: 1, succeeded: 0 });
  });
});

describe('3. a delay never lives only in a process', () => {
  test('what was to be tried again later is, by another process, and not before', async () => {
    const { clock, boot, publish, whereIs } = world();
    await publish({ id: 'a' });
    const first = boot({
      policy: { backoff: { base: '1m', jitter: 'none' } },
      handler: () => {
        throw down();
      },
    });
    await first.consumer.start();
    await clock.advance('1s');
    first.die();
    expect(await whereIs('a')).toBe('delayed');
    const handledAt: number[] = [];
    const heir = boot({ handler: () => void handledAt.push(clock.now()) });
    await heir.consumer.start();
    await clock.advance('58s');
    expect(handledAt).toEqual([]);
    await settleDown(clock);
    expect(handledAt.length).toBe(1);
    expect(handledAt[0]).toBeGreaterThanOrEqual(60_000);
  });
});

describe('4. an event that took the process down is not run together with others until it is cleared', () => {
  test('it runs alone, is parked after three deaths, and its neighbours are not penalised', async () => {
    const { clock, boot, publish, whereIs, storage } = world();
    const names = Array.from({ length: 20 }, (_, index) => `e${index}`);
    await publish(...names.map((id) => ({ id })));
    let inHand = 0;
    let deaths = 0;
    const companyOfKiller: number[] = [];
    const start = async () => {
      const process = boot({
        concurrency: 5,
        handler: async ({ id, attempt, delivery }) => {
          inHand += 1;
          if (id === 'e7') {
            companyOfKiller.push(inHand);
            deaths += 1;
            process.die();
            inHand = 0;
            // A process that is gone answers nothing.
            return new Promise<never>(() => {});
          }
          await scripted(clock, after(10, 1))();
          inHand = Math.max(0, inHand - 1);
          expect([attempt, delivery.suspect && inHand > 0]).toEqual([1, false]);
          return commit((tx) => (tx as { put(name: string, value: string): void }).put(id, ''));
        },
      });
      await process.consumer.start();
    };
    await start();
    for (let seconds = 0, seen = 0; seconds < 120; seconds++) {
      await clock.advance('1s');
      // A supervisor starts it again.
      if (deaths > seen) {
        seen = deaths;
        await start();
      }
    }
    expect(deaths).toBe(3);
    expect(companyOfKiller.slice(1)).toEqual([1, 1]);
    const { triage } = memoryEngine({ clock, storage });
    expect((await triage.get('e7'))?.diagnosis).toMatchObject({
      stop: 'crashed',
      reason: 'HOLDFAST_CRASHED',
    });
    for (const id of names.filter((name) => name !== 'e7'))
      expect([id, await whereIs(id)]).toEqual([id, 'done']);
  });

  /** Leaves suspects behind: a process died while it handled them. */
  async function suspects(count: number, { boot, publish, clock }: ReturnType<typeof world>): Promise<void> {
    await publish(...Array.from({ length: count }, (_, index) => ({ id: `suspect ${index}` })));
    const dying = boot({ concurrency: count, handler: () => new Promise<never>(() => {}) });
    await dying.consumer.start();
    await clock.advance('100ms');
    dying.die();
    await clock.advance('5s');
  }

  test('however long it takes, and whatever comes in the meantime', async () => {
    const stage = world();
    const { clock, boot, publish } = stage;
    await suspects(1, stage);
    const seen: string[] = [];
    const orders = boot({
      handler: async ({ id }) => {
        seen.push(`${id} begins`);
        // Ten times as long as a lease.
        await scripted(clock, after(id === 'later' ? 0 : 30_000, 1))();
        seen.push(`${id} ends`);
      },
    });
    await orders.consumer.start();
    for (let second = 0; second < 20; second++) {
      await clock.advance('1s');
      await publish({ id: 'later' });
    }
    expect(seen).toEqual(['suspect 0 begins']);
    await clock.advance('20s');
    expect(seen).toEqual(['suspect 0 begins', 'suspect 0 ends', 'later begins', 'later ends']);
    await orders.consumer.stop();
  });

  test('one right after the other, with the rest in between', async () => {
    const stage = world();
    const { clock, boot, publish } = stage;
    await suspects(40, stage);
    const ms = 50;
    const orders = boot({
      // Shorter than a turn of suspects.
      lease: '400ms',
      handler: async () => void (await scripted(clock, after(ms, 1))()),
    });
    await orders.consumer.start();
    const begunAt = clock.now();
    for (let count = 0; orders.consumer.state().counters.succeeded < 140; count++) {
      // Each of these rings at a consumer that runs a suspect.
      if (count < 100) await publish({ id: `other ${count}` });
      await clock.advance(ms / 2);
    }
    expect(clock.now() - begunAt).toBeLessThan(40 * ms * 1.5);
    await orders.consumer.stop();
  });

  test('also not together with events of other consumers of the process', async () => {
    const { clock, boot, publish, storage } = world();
    const { broker } = memoryEngine({ clock, storage });
    await broker.declare('mails');
    await publish({ id: 'suspect' });
    const dying = boot({ handler: () => new Promise<never>(() => {}) });
    await dying.consumer.start();
    await clock.advance('100ms');
    dying.die();
    await clock.advance('5s');

    let mailsInHand = 0;
    const company: number[] = [];
    const exclusiveRun = new ExclusiveRun();
    const mails = boot({
      exclusiveRun,
      topic: 'mails',
      handler: async () => {
        mailsInHand += 1;
        await scripted(clock, after(500, 1))();
        mailsInHand -= 1;
      },
    });
    const orders = boot({ exclusiveRun, handler: () => void company.push(mailsInHand) });
    await mails.consumer.start();
    await broker.publish(
      'mails',
      Array.from({ length: 50 }, (_, index) => ({ id: `m${index}`, payload: '1' })),
    );
    await clock.advance('100ms');
    await orders.consumer.start();
    await clock.advance('1m');
    expect(company).toEqual([0]);
    expect(mails.consumer.state().counters.succeeded).toBe(50);
    for (const each of [mails, orders]) await each.consumer.stop();
  });
});
