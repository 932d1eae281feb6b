import { type Contestant, rateOf } from '../events/event-case.ts';

/** How many assemblies a round has, and how many are under way at the same time. */
export interface Load {
  readonly assemblies: number;
  readonly atOnce: number;
}

export const stepNames: readonly string[] = ['charge', 'reserve', 'print', 'ship', 'notify'];

export interface Order {
  readonly id: number;
  readonly item: string;
}

/** What a step does: next to nothing, so that the figures are those of the records. */
export function stepResult(name: string, { id }: Order): { readonly step: string; readonly order: number } {
  return { step: name, order: id };
}

/** Steps a second: each assembly is started, and waited for until its end is durable. */
export function stepsPerSecond(
  { assemblies, atOnce }: Load,
  run: (order: Order) => Promise<unknown>,
  close: () => Promise<void>,
): Contestant {
  return {
    round: () =>
      rateOf(assemblies * stepNames.length, async () => {
        let next = 0;
        const line = async () => {
          while (next < assemblies) await run({ id: next++, item: 'a book of two hundred pages' });
        };
        await Promise.all(Array.from({ length: Math.min(atOnce, assemblies) }, line));
      }),
    close,
  };
}
