import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type Engine, missing } from '@holdfast/contracts';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { type ConsumerOptions, consumer, ExclusiveRun, type HandledEvent } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import { breakerOf, type Duration, durationMs, policy } from 'holdfast';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { onTestFinished } from 'vitest';
import { down } from './stage.ts';

export type Store = 'memory' | 'sqlite';

type AnyEngine = Required<Engine<unknown>>;

interface World {
  readonly clock: VirtualClock;
  /** Another connection to the same events, as another process would have it. */
  open(): Promise<AnyEngine>;
  /** Moves time on, and lets the store answer meanwhile. */
  pass(duration: Duration): Promise<void>;
}

/** SQLite answers in later turns of the event loop: time may not move on by more than this without one. */
const stepMs = 500;
const turnsPerStep = 8;

const worlds: Readonly<Record<Store, () => Promise<World>>> = {
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
  return { ...engine, broker, features: { ...engine.features, doorbell: missing('polling is enough here') } };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

let stages = 0;

export interface StartOptions extends Partial<ConsumerOptions> {
  /** Another process has a name and breakers of its own. */
  readonly process?: string;
  /** The payment fails for it, however well the service is. */
  readonly isPoison?: (id: string) => boolean;
  /** What the handler does with the payment; it awaits it unless given. */
  readonly handle?: (event: HandledEvent, pay: () => Promise<void>) => unknown;
}

/** Consumers of `orders` whose handlers call a payment service that can be down. */
export async function outageStage(store: Store = 'memory') {
  const { clock, open, pass } = await worlds[store]();
  const engine = await open();
  const { broker, triage } = engine;
  const name = `payment ${process.pid} ${++stages}`;
  const service = { isDown: false };
  /** Each call of a handler. */
  const calls: string[] = [];
  /** Events whose handler has succeeded, in this order. */
  const done: string[] = [];
  let started = 0;

  /** Starts a process: its breakers begin closed. */
  async function start(options: StartOptions = {}) {
    const { process = '', isPoison = () => false, handle = (_, pay) => pay(), ...rest } = options;
    started += 1;
    const payment = policy(
      { name: `${name}${process}`, attempts: 1, retryOn: 'any', attemptTimeout: 'none' },
      { clock, random: seededRandom('payment', started) },
    );
    const life = mortal(started === 1 ? engine : await open());
    const made = consumer({
      engine: life.engine,
      topic: 'orders',
      clock,
      random: seededRandom('consumer', started),
      dependsOn: [`${name}${process}`],
      exclusiveRun: new ExclusiveRun(),
      handler: async (event) => {
        calls.push(event.id);
        const pay = () =>
          payment.run(async () => {
            if (service.isDown || isPoison(event.id)) throw down();
          });
        const answer = await handle(event, pay);
        done.push(event.id);
        return answer as undefined;
      },
      ...rest,
    });
    await made.start();
    onTestFinished(async () => {
      if (life.isOver()) return;
      const stopping = made.stop({ grace: 0 });
      await pass('5s');
      await stopping;
    });
    /** As another caller in the process would, until the breaker is open. */
    async function openBreaker(): Promise<void> {
      for (let call = 0; call < 5; call++) await payment.try(() => Promise.reject(down()));
    }
    return Object.assign(made, { die: life.end, openBreaker });
  }

  /** `keys`: the number of keys, used in turn; 0: the topic keeps no order. */
  async function publish(count: number, keys = 0, first = 0): Promise<void> {
    await broker.declare('orders', { ordering: keys > 0 ? 'key' : 'none' });
    const events = Array.from({ length: count }, (_, index) => ({
      id: idOf(first + index),
      payload: '{}',
      ...(keys > 0 && { key: `k${(first + index) % keys}` }),
    }));
    await broker.publish('orders', events);
  }

  /** What was counted for each waiting event: `attempts + snoozes`. */
  async function charges(): Promise<Record<string, string>> {
    const { items } = await broker.waiting('orders', { limit: 1000 });
    return Object.fromEntries(items.map(({ id, attempts, snoozes }) => [id, `${attempts} + ${snoozes}`]));
  }

  /** The stop reason of each parked event. */
  async function parked(): Promise<Record<string, string>> {
    const { items } = await triage.list({ topic: 'orders' }, { limit: 1000 });
    return Object.fromEntries(items.map(({ id, stop }) => [id, stop]));
  }

  return {
    clock,
    engine,
    triage,
    name,
    service,
    calls,
    done,
    pass,
    start,
    publish,
    charges,
    parked,
    breaker: (process = '') => breakerOf(`${name}${process}`)?.state(clock.now()),
  };
}

export function idOf(index: number): string {
  return `e${String(index).padStart(3, '0')}`;
}

/** Ids from `first` on. */
export function idsFrom(first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => idOf(first + index));
}

/** The engine as a process sees it that can be killed: from then on its calls do nothing and never settle. */
function mortal(engine: AnyEngine) {
  let isOver = false;
  const never = () => new Promise<never>(() => {});
  const broker = new Proxy(engine.broker, {
    get(target, member) {
      const found = Reflect.get(target, member) as unknown;
      if (typeof found !== 'function' || member === 'doorbell') return found;
      return (...args: unknown[]) => (isOver ? never() : Reflect.apply(found, target, args));
    },
  });
  return {
    engine: { ...engine, broker },
    isOver: () => isOver,
    end: () => {
      isOver = true;
    },
  };
}
