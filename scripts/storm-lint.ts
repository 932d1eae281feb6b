import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RunPool } from '@holdfast/simulator';
import { endOnSignal, root } from './command.ts';
import { agree, type Judged, judge, policyGrid } from './lint-grid.ts';

const document = path.join(root, 'docs/lint-and-storms.md');

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

A warning that these storms do not bear out is not a false one: they are small, short, and one of each kind. The rules that
warned alone:

${groups(unproven, ({ rules }) => rules.join(', ')) || 'None.'}
`;
}

function groups(all: readonly Judged[], by: (each: Judged) => string): string {
  const named = Object.groupBy(all, by);
  const rows = Object.entries(named)
    .sort(([, a], [, b]) => b!.length - a!.length)
    .map(([what, its]) => `| ${what} | ${its!.length} | \`${JSON.stringify(its![0]!.spec)}\` |`);
  return rows.length === 0 ? '' : ['| what | policies | such as |', '|---|---|---|', ...rows].join('\n');
}
