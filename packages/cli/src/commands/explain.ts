import { parsePolicies } from '@holdfast/config';
import { policy } from 'holdfast';
import { explain } from 'holdfast/explain';
import { type Command, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { readText } from '../files.ts';
import { onlyOperand, textOf } from '../given-values.ts';
import { wrapText } from '../text-width.ts';

export const explainPolicy: Command = {
  name: 'explain',
  summary: 'what a policy does, in words: its order, its waits, what it costs at worst',
  operands: '<policy.yaml>',
  flags: {
    policy: { value: 'name', says: 'only this policy of the file' },
    within: {
      value: 'policy',
      many: true,
      says: 'a policy of the file that repeats the work around it, such as a consumer’s: what both cost together',
    },
  },
  examples: [
    'explain policies.yaml',
    'explain policies.yaml --policy payment',
    'explain policies.yaml --policy payment --within consumer',
  ],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a file of policies');
    const policies = parsePolicies(await readText(file), file);
    const named = (flag: string, name: string) => {
      const spec = policies.get(name);
      if (spec) return policy({ ...spec, name });
      throw noPolicyIn(file, flag, name, policies.keys());
    };
    const within = (given.lists.within ?? []).map((name) => named('within', name));
    const only = textOf(given, 'policy');
    const others = [...policies.keys()].filter((name) => !given.lists.within?.includes(name));
    if (only === undefined && others.length === 0 && within.length > 0)
      throw new UsageError(`--within: ${file} has no other policy to explain; say it with --policy.`);
    for (const [index, name] of (only === undefined ? others : [only]).entries()) {
      const explanation = explain(named('policy', name), { within });
      if (given.flags.json) terminal.out(JSON.stringify(explanation));
      else terminal.out(`${index > 0 ? '\n\n' : ''}${fitExplanation(`${explanation}`, terminal.columns)}`);
    }
    return 0;
  },
};

export function noPolicyIn(file: string, flag: string, name: string, known: Iterable<string>): UsageError {
  const has = [...known];
  const meant = didYouMean(name, has).replace('; did', '. Did');
  return new UsageError(
    `--${flag}: ${file} has no policy "${name}"; it has ${has.join(', ')}${meant || '.'}`,
  );
}

/** The sentences of the first two sections begin at this column, after the names of the policy's layers. */
const sentencesAt = 19;

function fitExplanation(text: string, columns: number | undefined): string {
  let isInLayers = false;
  return text
    .split('\n')
    .map((line) => {
      if (/^\S/.test(line)) isInLayers = line.startsWith('Around ');
      const own = /^ */.exec(line)![0].length;
      return wrapText(line, columns, isInLayers && own === 2 ? sentencesAt - own : 2);
    })
    .join('\n');
}
