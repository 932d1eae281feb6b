import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Engine } from '@holdfast/contracts';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { type Consumer, type ConsumerOptions, consumer, type HandledEvent, Solitude } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import { breakerOf, type Duration, durationMs, policy } from 'holdfast';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { onTestFinished } from 'vitest';
import { down } from './stage.ts';

export type Store = 'memory' | 'sqlite';

type AnyEngine = Required<Engine<unknown>>;

interface Store_ {
  readonly clock: VirtualClock;
  /** Another connection to the same events, as another process would have it. */
  open(): Promise<AnyEngine>;
  /** Moves time on, and lets the store answer meanwhile. */
  pass(duration: Duration): Promise<void>;
}

/** SQLite answers in later turns of the event loop: time may not move on by more than this without one. */
const stepMs = 500;
const turnsPerStep = 8;

const stores: Readonly<Record<Store, () => Promise<Store_>>> = {
  async memory() {
    const clock = virtualClock();
    const storage = new MemoryStorage();
    const open = async () => memoryEngine({ clock, storage, random: seededRandom('ids') }) as AnyEngine;
    return { clock, open, pass: (duration) => clock.advance(duration) };
  },

  async sqlite() {
    const clock = virtualClock();
    const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-outage-'));
    const opened: AnyEngine[] = [];
    onTestFinished(async () => {
      for (const engine of opened) await engine.close();
      await rm(folder, { recursive: true });
    });
    return {
      clock,
      async open() {
        const engine = (await openSqlite({
          file: path.join(folder, 'events.db'),
          clock,
        })) as unknown as AnyEngine;
        opened.push(engine);
        return withoutDoorbell(engine);
      },
      async pass(duration) {
        for (let leftMs = durationMs(duration); leftMs > 0; leftMs -= stepMs) {
          await clock.advance(Math.min(stepMs, leftMs));
          for (let turn = 0; turn < turnsPerStep; turn++) await nextTurn();
        }
      },
    };
  },
};

/** The doorbell of SQLite looks at the file every 10 ms, which are 720,000 looks in two hours: polling is enough here. */
function withoutDoorbell(engine: AnyEngine): AnyEngine {
  const broker = Object.create(engine.broker, { doorbell: { value: () => () => {} } });
  return { ...engine, broker, features: { ...engine.features, doorbell: false } };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

let stages = 0;

/** Consumers of `orders` whose handlers call a payment service that can be away, each in a process of its own. */
export async function outageStage(store: Store = 'memory') {
  const { clock, open, pass } = await stores[store]();
  const engine = await open();
  const { broker, triage } = engine;
  const name = `payment ${process.pid} ${++stages}`;
  const service = { isDown: false };
  /** Each call of a handler. */
  const calls: string[] = [];
  /** Events whose handler has succeeded, in this order. */
  const done: string[] = [];
  let started = 0;

  /** A start of the process: breakers begin anew. */
  function payment(process = '') {
    return policy(
      { name: `${name}${process}`, attempts: 1, retryOn: 'any', attemptTimeout: 'none' },
      { clock, random: seededRandom('payment', started) },
    );
  }

  async function start(
    options: Partial<ConsumerOptions> & {
      /** What an event does before or instead of the call. */
      readonly isPoison?: (event: HandledEvent) => boolean;
      readonly process?: string;
    } = {},
  ): Promise<Consumer> {
    const { isPoison = () => false, process = '', ...rest } = options;
    const service_ = payment(process);
    const made = consumer({
      engine: started === 0 ? engine : await open(),
      topic: 'orders',
      clock,
      random: seededRandom('consumer', ++started),
      dependsOn: [`${name}${process}`],
      solitude: new Solitude(),
      handler: async (event) => {
        calls.push(event.id);
        await service_.run(async () => {
          if (service.isDown || isPoison(event)) throw down();
        });
        done.push(event.id);
      },
      ...rest,
    });
    await made.start();
    onTestFinished(async () => {
      const stopping = made.stop({ grace: 0 });
      await pass('5s');
      await stopping;
    });
    return made;
  }

  async function publish(count: number, keys = 0, first = 0): Promise<void> {
    await broker.declare('orders', { ordering: keys > 0 ? 'key' : 'none' });
    const events = Array.from({ length: count }, (_, index) => ({
      id: idOf(first + index),
      payload: '{}',
      ...(keys > 0 && { key: `k${(first + index) % keys}` }),
    }));
    await broker.publish('orders', events);
  }

  /** What each waiting event has been charged: `attempts + snoozes`. */
  async function charges(): Promise<Record<string, string>> {
    const { items } = await broker.waiting('orders', { limit: 1000 });
    return Object.fromEntries(items.map(({ id, attempts, snoozes }) => [id, `${attempts} + ${snoozes}`]));
  }

  return {
    clock,
    engine,
    broker,
    triage,
    name,
    service,
    calls,
    done,
    pass,
    start,
    publish,
    charges,
    parked: () => triage.count({ topic: 'orders' }),
    breaker: (process = '') => breakerOf(`${name}${process}`)?.state(clock.now()),
  };
}

export function idOf(index: number): string {
  return `e${String(index).padStart(3, '0')}`;
}
