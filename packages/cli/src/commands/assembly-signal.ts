import { randomUUID } from 'node:crypto';
import { actOf, byHand, harmlessActFlags } from '../acts.ts';
import { wholeAssemblyId, withAssemblies } from '../assembly-ids.ts';
import { type Command, UsageError } from '../command.ts';
import { textOf } from '../given-values.ts';
import { storeFlag } from '../store.ts';

export const assemblySignal: Command = {
  name: 'assembly signal',
  summary: 'send a signal to an assembly that may wait for it',
  operands: '<id> <name>',
  flags: {
    ...storeFlag,
    payload: { value: 'JSON', says: 'what the program gets; nothing unless given' },
    'signal-id': { value: 'id', says: 'with the same id it is sent once; a new one unless given' },
    ...harmlessActFlags,
  },
  examples: [
    'assembly signal 14e22cc7 approved',
    `assembly signal 14e22cc7 approved --payload '{"by":"ada"}' --signal-id approval-17`,
  ],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async ({ journal }) => {
      const [operand, name, ...more] = given.operands;
      if (operand === undefined || name === undefined || more.length > 0)
        throw new UsageError('the id of an assembly and the name of a signal are needed, and no more.');
      const payload = textOf(given, 'payload');
      if (payload !== undefined && !isJson(payload))
        throw new UsageError(`--payload: expected JSON, got "${payload}".`);
      const to = await wholeAssemblyId(operand, journal);
      const id = textOf(given, 'signal-id') ?? randomUUID();
      const [result = 'unknown'] = await journal.signal([
        { to, id, name, payload, act: actOf(given, terminal, byHand) },
      ]);
      terminal.out(
        given.flags.json
          ? JSON.stringify({ id: to, name, signal: id, result })
          : `${to} ${sentences[result]}.`,
      );
      return result === 'accepted' || result === 'repeated' ? 0 : 1;
    }),
};

const sentences = {
  accepted: 'has the signal',
  repeated: 'had this signal before',
  ended: 'has ended, and takes no signal',
  unknown: 'does not exist',
} as const;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
