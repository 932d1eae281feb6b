import { setTimeout as pause } from 'node:timers/promises';
import type { Engine } from '@holdfast/contracts';
import { type ConsumerOptions, consumer, type EventDraft, producer, retry } from '@holdfast/events';
import { type Contestant, rateOf } from './event-case.ts';

export interface Load {
  readonly events: number;
  /** Events that one publish stores. */
  readonly batch: number;
  readonly ordering?: 'none' | 'key';
  /** The key of the nth event. */
  key?(index: number): string;
  /** Whether this attempt of the nth event fails. */
  fails?(index: number, attempt: number): boolean;
}

export const payload = 'x'.repeat(200);
const topic = 'bench';

/** A round publishes all events, then has a consumer handle them until the store holds none. */
export function throughConsumer(
  engine: Engine,
  load: Load,
  options: Partial<ConsumerOptions> = {},
): Contestant {
  const { events, ordering = 'none', key, fails } = load;
  const publisher = producer({ engine, topic, ordering, format: 'raw' });
  const failure = new Error('not yet');
  const draft = (index: number): EventDraft => ({
    payload,
    ...(key && { key: key(index) }),
    // An unordered topic only carries it along.
    ...(fails && { key: String(index) }),
  });

  return {
    async round() {
      const handled = consumer({
        engine,
        topic,
        ordering,
        name: 'bench@1',
        effects: 'once',
        format: 'raw',
        concurrency: 100,
        policy: { backoff: { base: '1ms', cap: '1ms' } },
        handler: fails
          ? ({ key: number, attempt }) => (fails(Number(number), attempt) ? retry(failure) : undefined)
          : () => undefined,
        ...options,
      });
      const rate = await rateOf(events, async () => {
        for (let at = 0; at < events; at += load.batch) {
          await publisher.publishAll(Array.from({ length: load.batch }, (_, index) => draft(at + index)));
        }
        await handled.start();
        // Not in a loop without a rest: it would take a core from the server.
        while (handled.state().counters.succeeded < events) await pause(1);
      });
      await handled.stop();
      return rate;
    },
    close: () => engine.close(),
  };
}
