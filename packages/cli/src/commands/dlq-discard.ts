import { type Command, UsageError } from '../command.ts';
import { actOf } from '../given-values.ts';
import { storeFlag, withStore } from '../store.ts';

export const dlqDiscard: Command = {
  name: 'dlq discard',
  summary: 'give parked events up, with a reason',
  operands: '<id…>',
  flags: {
    ...storeFlag,
    reason: { value: 'text', says: 'why; kept in the audit log (needed)' },
    who: { value: 'name', says: 'kept in the audit log; your user name unless given' },
    undo: { says: 'take the discard of these events back' },
  },
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage }) => {
      const { operands: ids } = given;
      if (ids.length === 0) throw new UsageError('the id of an event is needed.');
      const act = actOf(given, terminal.user, 'reason');
      const changed = given.flags.undo ? await triage.restore(ids, act) : await triage.discard(ids, act);
      const verb = given.flags.undo ? 'restored' : 'discarded';
      ids.forEach((id, index) => {
        const isDone = changed[index] === true;
        if (given.flags.json) terminal.out(JSON.stringify({ id, [verb]: isDone }));
        else
          terminal.out(
            isDone ? `${id} is ${verb}.` : `${id} was not: it is not parked here, or a replay has it.`,
          );
      });
      return changed.every(Boolean) ? 0 : 1;
    }),
};
