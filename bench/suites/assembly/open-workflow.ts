import { OpenWorkflow } from 'openworkflow';
import type { Contestant } from '../events/event-case.ts';
import { type Load, type Order, stepNames, stepResult, stepsPerSecond } from './load.ts';

type Backend = ConstructorParameters<typeof OpenWorkflow>[0]['backend'];

/**
 * One worker with as many slots as there are runs. It is woken by polling, so the end of a run is counted where its program
 * ends, not where a caller has polled for it.
 */
export async function openWorkflow(backend: Backend, load: Load): Promise<Contestant> {
  const client = new OpenWorkflow({ backend });
  const ends = new Map<number, () => void>();
  const order = client.defineWorkflow<Order, number>({ name: 'order' }, async ({ input, step }) => {
    const results = [];
    for (const name of stepNames) results.push(await step.run({ name }, async () => stepResult(name, input)));
    ends.get(input.id)?.();
    return results.length;
  });
  const worker = client.newWorker({ concurrency: load.atOnce });
  await worker.start();
  return stepsPerSecond(
    load,
    async (given) => {
      const ended = new Promise<void>((resolve) => ends.set(given.id, resolve));
      await order.run(given);
      await ended;
    },
    async () => {
      await worker.stop();
      await backend.stop();
    },
  );
}
