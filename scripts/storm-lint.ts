import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RunPool } from '@holdfast/simulator';
import { endOnSignal, root } from './command.ts';
import { agree, type Judged, judge, policyGrid } from './lint-grid.ts';

const document = path.join(root, 'docs/lint-and-storms.md');

/** Where each rule shows, in a storm of the suite or a figure of its own. */
const shown: Record<string, string> = {
  'no-delay':
    'In S01b, `immediate3` makes 1.7 attempts for each call. `finagle`, which has a budget, makes 1.15 attempts; the bound is 1.10.',
  'no-jitter':
    'In S02, `expoNoJitter` causes 1.4 times the normal load after the outage. In S02b, 15,000 attempts are answered after their callers have given up. The small storm has only 300 clients, which is too few for this harm.',
  'no-budget':
    'In S01b, `fullJitter3` makes 2.5 attempts for each call. In the small storms, the breaker opens before the budget would limit retries.',
  'large-budget':
    'In S01b, `awsStandard` with a budget of a fifth makes 1.15 attempts for each call. A budget of a tenth meets the bound of 1.10. In the small storms, the breaker opens before the budget is used up.',
  'no-breaker':
    'In S03, the service recovers after 164 s with a budget alone, and after 2 s with a breaker. In the small storm, the stall lasts only 4 s, and the queue becomes empty without a breaker.',
  'hasty-breaker':
    'In another test, each of a hundred clients makes a call every five seconds, and three in ten attempts fail. With a hasty breaker 64 % of the calls succeed, and with the default breaker 74 %. The small storms do not measure calls that are refused without need.',
  'no-timeout': 'In the small storm in which the service hangs, each of these policies does harm.',
  'attempts-exceed-patience':
    'This mistake does no harm to others. It misleads the reader of the policy: some attempts can never be made.',
};

endOnSignal();
await using pool = new RunPool();
const judged = await judge(policyGrid(), pool);
const text = documentOf(judged);
await writeFile(document, text);
console.log(
  `${judged.filter(agree).length} of ${judged.length} policies: linter and simulator agree. docs/lint-and-storms.md lists the others.`,
);

function documentOf(all: readonly Judged[]): string {
  const both = all.filter(({ rules, harms }) => rules.length > 0 && harms.length > 0);
  const neither = all.filter(({ rules, harms }) => rules.length === 0 && harms.length === 0);
  const unseen = all.filter(({ rules, harms }) => rules.length === 0 && harms.length > 0);
  const unproven = all.filter(({ rules, harms }) => rules.length > 0 && harms.length === 0);
  return `# Do the linter and the simulator agree?

The linter (\`lint\`) reads a policy and warns of mistakes. The simulator runs a policy in storms, that is, in simulated outages. This
page compares the two with ${all.length.toLocaleString('en')} policies: every combination of attempts, backoff, budget, breaker, limit and patience in
\`scripts/lint-grid.ts\`. There are six small storms: an outage, a full service, a stall, a service that fails now and then, many
clients that call at the same moment, and a service that hangs. For the linter, a policy is dangerous if it breaks a rule that is
more than advice. For the simulator, a policy is dangerous if it does more harm in a storm than a policy without retries.
\`node --conditions=holdfast-source scripts/storm-lint.ts\` writes this page.

| | does harm in a storm | does no harm in any storm |
|---|---|---|
| the linter warns | ${both.length} | ${unproven.length} |
| the linter is silent | **${unseen.length}** | ${neither.length} |

The linter and the simulator agree on ${both.length + neither.length} of ${all.length} policies (${((100 * (both.length + neither.length)) / all.length).toFixed(1)} %).

## Silent, and it hurts

${groups(unseen, ({ harms }) => harms.join(', ')) || 'There is no such policy.'}

## Warned of, and harmless here

If the linter warns and no small storm shows harm, the warning can still be right. The storms are small and short, and there is only
one of each kind. Also, the other parts of a policy often make up for the missing part. For each rule, the table says how many
policies that break this rule do harm in these storms, and how many do not. Names such as S01b are [larger storms](storms.md), and names
such as \`immediate3\` are policies that were tried there.

${byRule(all)}

The next table groups the policies that do no harm here by the rules that they break:

${groups(unproven, ({ rules }) => rules.join(', ')) || 'None.'}
`;
}

function byRule(all: readonly Judged[]): string {
  const rules = [...new Set(all.flatMap((each) => each.rules))];
  const rows = rules
    .map((rule) => {
      const its = all.filter(({ rules }) => rules.includes(rule));
      const harmless = its.filter(({ harms }) => harms.length === 0);
      const alone = harmless.filter(({ rules }) => rules.length === 1);
      return { rule, hurts: its.length - harmless.length, harmless: harmless.length, alone: alone.length };
    })
    .sort((a, b) => b.harmless - a.harmless)
    .map(
      ({ rule, hurts, harmless, alone }) =>
        `| \`${rule}\` | ${hurts} | ${harmless} | ${alone} | ${shown[rule] ?? 'No test shows it yet.'} |`,
    );
  return [
    '| rule | policies that do harm | policies that do no harm | of these, policies that break only this rule | where the harm of this mistake can be seen |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function groups(all: readonly Judged[], by: (each: Judged) => string): string {
  const named = Object.groupBy(all, by);
  const rows = Object.entries(named)
    .sort(([, a], [, b]) => b!.length - a!.length)
    .map(([what, its]) => `| ${what} | ${its!.length} | \`${JSON.stringify(its![0]!.spec)}\` |`);
  return rows.length === 0
    ? ''
    : ['| what | number of policies | one of them |', '|---|---|---|', ...rows].join('\n');
}
