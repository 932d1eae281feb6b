import { operations } from '@holdfast/events';
import { actOf, byHand, harmlessActFlags } from '../acts.ts';
import { changeEvents } from '../change-events.ts';
import { type Command, UsageError } from '../command.ts';
import { msOf } from '../given-values.ts';
import { chooseFlags, chosenFilter } from '../parked-flags.ts';
import { storeFlag, withStore } from '../store.ts';

export const dlqKeep: Command = {
  name: 'dlq keep',
  summary: 'keep parked events for longer, or for less long, before the store removes them',
  operands: '[id…]',
  flags: {
    ...storeFlag,
    ...chooseFlags,
    ...harmlessActFlags,
    for: { value: 'duration', says: 'removed so long after now (needed)' },
  },
  examples: ["dlq keep --group 4f1d9ac0 --for 90d --why 'the audit wants them'"],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const keepMs = msOf(given, 'for');
      if (keepMs === undefined) throw new UsageError('--for is needed: how long they are kept.');
      const filter = await chosenFilter(given, engine);
      return changeEvents(
        engine,
        operations({ engine }),
        { kind: 'keep', filter, keepMs },
        () => actOf(given, terminal, byHand),
        given,
        terminal,
      );
    }),
};
