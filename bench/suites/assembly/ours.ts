import { type AssembliesOptions, assemblies, assembly } from '@holdfast/assembly';
import type { Contestant } from '../events/event-case.ts';
import { type Load, type Order, stepNames, stepResult, stepsPerSecond } from './load.ts';

const order = assembly('order', { version: 1 }, async (step, given: Order) => {
  const results = [];
  for (const name of stepNames) results.push(await step.run(name, () => stepResult(name, given)));
  return results.length;
});

const sleeper = assembly('sleeper', { version: 1 }, (step) => step.sleep('long', '30d'));

/** One process that starts assemblies and runs them. `asleep`: so many others sleep in the same store meanwhile. */
export async function ours<Tx>(
  engine: AssembliesOptions<Tx>['engine'] & { close(): Promise<void> },
  load: Load,
  asleep = 0,
): Promise<Contestant> {
  const work = assemblies({ engine, programs: [order, sleeper] as never, concurrency: 1000 });
  await work.run();
  let started = 0;
  const lie = async () => {
    while (started++ < asleep) await work.start(sleeper as never, null as never);
  };
  await Promise.all(Array.from({ length: 500 }, lie));
  return stepsPerSecond(
    load,
    async (given) => (await work.start(order as never, given as never)).result(),
    async () => {
      await work.stop();
      await engine.close();
    },
  );
}
