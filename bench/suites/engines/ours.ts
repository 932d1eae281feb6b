import type { Broker, Engine } from '@holdfast/contracts';
import { type Consumer, consumer, retry } from '@holdfast/events';
import type { Contestant } from '../events/event-case.ts';
import { concurrency, drainRate, type Handle, payload, until } from './drain.ts';

const batch = 1000;

export interface OurLoad {
  readonly count: number;
  /** Processor time of the server so far, where it counts. */
  serverNs(): number;
  /** One in this many fails at first. Default: none. */
  readonly failsOneIn?: number;
  /** Each event is looked up and marked in the ledger of the engine. Default: `false`. */
  readonly isMarked?: boolean;
}

/** Publishes plain events: what a consumer of somebody else reads is the same as ours. */
export async function publishAll(broker: Broker, topic: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += batch) {
    const size = Math.min(batch, count - at);
    await broker.publish(
      topic,
      Array.from({ length: size }, () => ({ payload })),
    );
  }
}

/**
 * A consumer of @holdfast/events. Its engine is opened for each round: an open one would fetch events while the queue is
 * filled, which is not measured.
 */
export async function ours(open: () => Engine, topic: string, load: OurLoad): Promise<Contestant> {
  const { count, serverNs, failsOneIn = Infinity, isMarked = false } = load;
  const { broker, close } = open();
  await broker!.declare(topic, { ordering: 'none' });
  const failure = new Error('not yet');
  return {
    async round() {
      await publishAll(broker!, topic, count);
      const engine = open();
      let first = 0;
      const made = (handle: Handle) =>
        consumer({
          ...{ engine, topic, concurrency, name: 'bench@1', format: 'raw' },
          effects: isMarked ? 'once' : 'off',
          policy: { backoff: { base: '200ms', cap: '200ms' } },
          async handler({ attempt }) {
            await handle();
            if (attempt > 1) return undefined;
            first += 1;
            return first % failsOneIn === 0 ? retry(failure) : undefined;
          },
        });
      let consuming: Consumer | undefined;
      // The state of a consumer is not for polling: it is asked only once all events had their first attempt.
      const succeeded = () => (first < count ? 0 : consuming!.state().counters.succeeded);
      const rate = await drainRate(count, serverNs, async (handle) => {
        consuming = made(handle);
        await consuming.start();
        // What fails is retried on its own time.
        await until(() => succeeded() >= (failsOneIn < Infinity ? count * (1 - 1 / failsOneIn) : count));
      });
      await until(() => succeeded() >= count);
      await consuming?.stop();
      await engine.close();
      return rate;
    },
    close,
  };
}
