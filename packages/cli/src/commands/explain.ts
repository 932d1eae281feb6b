import { parsePolicies } from '@holdfast/config';
import { policy } from 'holdfast';
import { explain } from 'holdfast/explain';
import { type Command, UsageError } from '../command.ts';
import { readText } from '../files.ts';
import { onlyOperand, textOf } from '../given-values.ts';

export const explainPolicy: Command = {
  name: 'explain',
  summary: 'what a policy does, in words: its order, its waits, what it costs at worst',
  operands: '<policy.yaml>',
  flags: {
    name: { value: 'policy', says: 'only this one of the file' },
    within: {
      value: 'policy',
      many: true,
      says: 'a policy of the file that repeats the work around it, such as a consumer’s: what both cost together',
    },
  },
  async run(given, terminal) {
    const file = onlyOperand(given, 'a file of policies');
    const policies = parsePolicies(await readText(file), file);
    const named = (flag: string, name: string) => {
      const spec = policies.get(name);
      if (spec) return policy({ ...spec, name });
      const has = [...policies.keys()].join(', ');
      throw new UsageError(`--${flag}: ${file} has no policy "${name}"; it has ${has}.`);
    };
    const within = (given.lists.within ?? []).map((name) => named('within', name));
    const only = textOf(given, 'name');
    const others = [...policies.keys()].filter((name) => !given.lists.within?.includes(name));
    if (only === undefined && others.length === 0 && within.length > 0)
      throw new UsageError(`--within: ${file} has no other policy to explain; say it with --name.`);
    for (const [index, name] of (only === undefined ? others : [only]).entries()) {
      const explanation = explain(named('name', name), { within });
      if (given.flags.json) terminal.out(JSON.stringify(explanation));
      else terminal.out(`${index > 0 ? '\n\n' : ''}${explanation}`);
    }
    return 0;
  },
};
