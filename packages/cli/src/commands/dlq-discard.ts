import { type AnyRequest, operations } from '@holdfast/events';
import { actFlags, actOf } from '../acts.ts';
import { changeEvents } from '../change-events.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { chooseFlags, chosenFilter } from '../parked-flags.ts';
import { tryOperationId } from '../parked-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';

export const dlqDiscard: Command = {
  name: 'dlq discard',
  summary: 'give parked events up, with a reason',
  operands: '[id…]',
  flags: {
    ...storeFlag,
    ...chooseFlags,
    ...actFlags,
    undo: { says: 'take it back: of these events, or of a whole discard by its id' },
  },
  examples: [
    "dlq discard 14e22cc7 --why 'a test order'",
    "dlq discard --group 4f1d9ac0 --until 7d --why 'too old to matter'",
    "dlq discard --undo 5c0e77a1 --why 'they matter after all'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const discard = given.flags.undo ? await discardToUndo(given, engine) : undefined;
      const change = (request: AnyRequest, undoes?: string) => {
        const act = () => ({ ...actOf(given, terminal), ...(undoes !== undefined && { undoes }) });
        return changeEvents(engine, operations({ engine }), request, act, given, terminal);
      };
      if (discard !== undefined) return change({ kind: 'undo', of: discard }, await entryOf(engine, discard));
      const filter = await chosenFilter(given, engine);
      if (!given.flags.undo) return change({ kind: 'discard', filter });
      return change({ kind: 'restore', filter: { ...filter, status: 'discarded' } });
    }),
};

/**
 * If the only operand is the id of a discard, that whole discard is undone. Returns undefined if the operands
 * are ids of events.
 */
async function discardToUndo({ operands }: Given, { triage }: OpenStore): Promise<string | undefined> {
  const [only, ...more] = operands;
  if (only === undefined || (await triage.get(only))) return undefined;
  const id = await tryOperationId(triage, only);
  if (id !== undefined && more.length > 0)
    throw new UsageError('--undo: say the id of one discard, or ids of events.');
  return id;
}

/** Returns the id of the audit entry of an operation. That entry records that the operation was undone. */
async function entryOf({ audit }: OpenStore, operation: string): Promise<string | undefined> {
  const question = { subject: `operation:${operation}`, what: ['discard', 'restore', 'keep'] } as const;
  return (await audit.list(question, { limit: 1 })).items[0]?.id;
}
