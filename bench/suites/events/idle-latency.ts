import { setTimeout as pause } from 'node:timers/promises';
import type { Engine } from '@holdfast/contracts';
import { consumer, producer } from '@holdfast/events';
import { spreadOf } from '../../compare.ts';
import type { Contestant } from './event-case.ts';
import { payload } from './through-consumer.ts';

const looks = 200;
/** Between two of them everything has come to rest. */
const restMs = 4;

/** How long it takes from the call of `publish` until the handler has the event, when there is nothing else to do. */
export function idleLatency(engine: Engine, share: number): Contestant {
  const topic = 'idle';
  const publisher = producer({ engine, topic, format: 'raw' });
  const ear = new Ear();
  const listening = consumer({
    engine,
    topic,
    effects: 'once',
    format: 'raw',
    handler: () => ear.hear(),
  });
  const started = listening.start();
  return {
    async round() {
      await started;
      return latencyAt(share, () => ear.timed(() => publisher.publish({ payload })));
    },
    async close() {
      await listening.stop();
      await engine.close();
    },
  };
}

/** Stands in a handler, and takes the time from a call until it hears of it. */
export class Ear {
  #heard: () => void = () => {};

  hear(): void {
    this.#heard();
  }

  async timed(call: () => Promise<unknown>): Promise<number> {
    const before = performance.now();
    const hearing = new Promise<number>((resolve) => {
      this.#heard = () => resolve(performance.now() - before);
    });
    await call();
    return hearing;
  }
}

/** The latency percentile `share`. */
export async function latencyAt(share: number, look: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  for (let count = 0; count < looks; count++) {
    all.push(await look());
    await pause(restMs);
  }
  if (share === 0.5) return spreadOf(all).median;
  const sorted = all.sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1]!;
}
