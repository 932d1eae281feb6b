import type { NewEvent, ParkedEvent } from '@holdfast/contracts';
import {
  type MemoryEngine,
  type MemoryOptions,
  MemoryStorage,
  type MemoryTransaction,
  memoryEngine,
} from '@holdfast/contracts/memory';
import { type Consumer, type ConsumerOptions, consumer, type HandledEvent } from '@holdfast/events';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { onTestFinished } from 'vitest';

export const act = { who: 'ann', why: 'a test' };

export type Options<T = unknown> = Omit<ConsumerOptions<T, MemoryTransaction>, 'topic' | 'handler'> & {
  readonly handler?: ConsumerOptions<T, MemoryTransaction>['handler'];
};

/** A memory engine on virtual time, and consumers of the topic `orders` on it. */
export function stage(memory: MemoryOptions = {}) {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  const engine: MemoryEngine = memoryEngine({ clock, storage, random: seededRandom('ids'), ...memory });
  const { broker, triage } = engine;
  const handled: string[] = [];
  let started = 0;

  async function open<T = unknown>(options: Options<T> = {}): Promise<Consumer> {
    const { handler, ...rest } = options;
    const made = consumer<T, MemoryTransaction>({
      engine,
      topic: 'orders',
      clock,
      random: seededRandom('consumer', ++started),
      ...rest,
      handler: async (event: HandledEvent<T>) => {
        handled.push(event.id);
        return handler?.(event);
      },
    });
    await made.start();
    onTestFinished(async () => {
      const stopping = made.stop({ grace: 0 });
      await clock.advance('1h');
      await stopping;
    });
    return made;
  }

  async function publish(...events: (Partial<NewEvent> & { id: string })[]): Promise<void> {
    await broker.declare('orders');
    await broker.publish(
      'orders',
      events.map((event) => ({ payload: '{}', ...event })),
    );
  }

  async function parked(id: string): Promise<ParkedEvent | undefined> {
    return triage.get(id);
  }

  /** What is left in the topic. */
  async function left(): Promise<string[]> {
    const { items } = await broker.waiting('orders', { limit: 1000 });
    return items.map(({ id, state }) => `${id} ${state}`);
  }

  return { clock, storage, engine, broker, triage, handled, open, publish, parked, left };
}

export function down(message = 'connection reset'): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' });
}
