import { parsePolicies } from '@holdfast/config';
import { policy } from 'holdfast';
import { explain } from 'holdfast/explain';
import { type Command, WrongQuestion } from '../command.ts';
import { readText } from '../files.ts';
import { onlyOperand, textOf } from '../given-values.ts';

export const explainPolicy: Command = {
  name: 'explain',
  summary: 'what a policy does, in words: its order, its waits, what it costs at worst',
  operands: '<policy.yaml>',
  flags: { name: { value: 'policy', says: 'only this one of the file' } },
  async run(given, shell) {
    const file = onlyOperand(given, 'a file of policies');
    const policies = parsePolicies(await readText(file), file);
    const only = textOf(given, 'name');
    if (only !== undefined && !policies.has(only)) {
      throw new WrongQuestion(
        `--name: ${file} has no policy "${only}"; it has ${[...policies.keys()].join(', ')}.`,
      );
    }
    const chosen = [...policies].filter(([name]) => only === undefined || name === only);
    for (const [index, [name, spec]] of chosen.entries()) {
      const explanation = explain(policy({ ...spec, name }));
      if (given.flags.json) shell.out(JSON.stringify(explanation));
      else shell.out(`${index > 0 ? '\n\n' : ''}${explanation}`);
    }
    return 0;
  },
};
