import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RunPool } from '@holdfast/simulator';
import { endOnSignal, root } from './command.ts';
import { agree, type Judged, judge, policyGrid } from './lint-grid.ts';

const document = path.join(root, 'docs/lint-and-storms.md');

/** Where each rule shows, in a storm of the suite or a figure of its own. */
const shown: Record<string, string> = {
  'no-delay':
    'S01b: `immediate3` makes 1.7 calls of one, and `finagle`, with a budget, 1.15 where 1.10 are allowed.',
  'no-jitter':
    'S02: after the outage `expoNoJitter` comes back with 1.4 times the normal load, S02b with 15,000 answers for nobody. A herd of 300 is too small for that.',
  'no-budget':
    'S01b: `fullJitter3` makes 2.5 calls of one. Where a breaker opens first, as in these storms, the budget has nothing left to do.',
  'large-budget':
    'S01b: a fifth, `awsStandard`, is 1.15 times the load; a tenth keeps the 1.10. Here an outage is cut short by the breaker before the budget is spent.',
  'no-breaker':
    'S03: a budget alone recovers after 164 s, with a breaker after 2. The stall here lasts 4 s, and drains by itself.',
  'hasty-breaker':
    'A hundred clients with a call in five seconds each, of which three in ten fail: 64 % of the work succeeds, and 74 % with the default. These storms ask for load, and not for what is refused in vain.',
  'no-timeout': 'In the storm whose service hangs: each of them hurts there.',
  'attempts-exceed-patience': 'It hurts nobody but its reader: attempts that are promised are never made.',
};

endOnSignal();
await using pool = new RunPool();
const judged = await judge(policyGrid(), pool);
const text = documentOf(judged);
await writeFile(document, text);
console.log(
  `${judged.filter(agree).length} of ${judged.length} policies: linter and simulator agree. docs/lint-and-storms.md has the others.`,
);

function documentOf(all: readonly Judged[]): string {
  const both = all.filter(({ rules, harms }) => rules.length > 0 && harms.length > 0);
  const neither = all.filter(({ rules, harms }) => rules.length === 0 && harms.length === 0);
  const unseen = all.filter(({ rules, harms }) => rules.length === 0 && harms.length > 0);
  const unproven = all.filter(({ rules, harms }) => rules.length > 0 && harms.length === 0);
  return `# Do the linter and the simulator agree?

${all.length.toLocaleString('en')} policies (every combination of attempts, backoff, budget, breaker, limit and patience in
\`scripts/lint-grid.ts\`) were read by \`lint\` and run in six small storms: an outage, a service that is full, a stall, a
service that fails now and then, a herd, and a service that hangs. A policy is dangerous to the linter when it breaks a rule that is more than advice, and to
the simulator when it hurts in one of the storms more than a policy without retries would. Written by \`node --conditions=holdfast-source scripts/storm-lint.ts\`.

| | hurts in a storm | harmless in all |
|---|---|---|
| the linter warns | ${both.length} | ${unproven.length} |
| the linter is silent | **${unseen.length}** | ${neither.length} |

They agree on ${both.length + neither.length} of ${all.length} (${((100 * (both.length + neither.length)) / all.length).toFixed(1)} %).

## Silent, and it hurts

${groups(unseen, ({ harms }) => harms.join(', ')) || 'None: what the linter lets pass did no harm.'}

## Warned of, and harmless here

A warning that these storms do not bear out is not a false one: they are small, short, one of each kind, and the other parts of a
policy often make up for the one that is missing. By rule: how many of its policies hurt here, how many do not, of how many
of those it is the only warning, and where it shows.

${byRule(all)}

The same by what was said together:

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
        `| \`${rule}\` | ${hurts} | ${harmless} | ${alone} | ${shown[rule] ?? 'Nowhere yet.'} |`,
    );
  return ['| rule | hurts | harmless | alone | where it shows |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}

function groups(all: readonly Judged[], by: (each: Judged) => string): string {
  const named = Object.groupBy(all, by);
  const rows = Object.entries(named)
    .sort(([, a], [, b]) => b!.length - a!.length)
    .map(([what, its]) => `| ${what} | ${its!.length} | \`${JSON.stringify(its![0]!.spec)}\` |`);
  return rows.length === 0 ? '' : ['| what | policies | such as |', '|---|---|---|', ...rows].join('\n');
}
