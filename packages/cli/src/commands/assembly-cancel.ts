import { actFlags, actOf } from '../acts.ts';
import { wholeAssemblyId, withAssemblies } from '../assembly-ids.ts';
import { type Command, UsageError } from '../command.ts';
import { storeFlag } from '../store.ts';

export const assemblyCancel: Command = {
  name: 'assembly cancel',
  summary: 'stop assemblies, and compensate what they have done; also after their end',
  operands: '<id…>',
  flags: { ...storeFlag, ...actFlags },
  examples: ["assembly cancel 14e22cc7 --why 'the customer changed their mind'"],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async ({ journal }) => {
      if (given.operands.length === 0) throw new UsageError('the id of an assembly is needed.');
      const { who, why } = actOf(given, terminal);
      const ids: string[] = [];
      for (const operand of given.operands) ids.push(await wholeAssemblyId(operand, journal));
      const stop = { because: 'cancelled', message: why, who };
      const results = await journal.requestStop(ids.map((id) => ({ id, stop })));
      ids.forEach((id, index) => {
        const result = results[index]!;
        terminal.out(given.flags.json ? JSON.stringify({ id, result }) : `${id} ${sentences[result]}.`);
      });
      return results.every((result) => result === 'requested') ? 0 : 1;
    }),
};

const sentences = {
  requested: 'is being stopped',
  already: 'was asked to stop before',
  committed: 'is committed, and can not be cancelled',
  unknown: 'does not exist',
} as const;
