import { parseAssertion, readDocument } from '@holdfast/config';
import { heatHtml, heatText, parseAxis, RunPool, sweep } from '@holdfast/simulator';
import { type Command, UsageError } from '../command.ts';
import { writeText } from '../files.ts';
import { fitReport } from '../fit-report.ts';
import { textOf } from '../given-values.ts';
import {
  assertMeasurable,
  asUsageError,
  outFlag,
  policiesOf,
  policyFlag,
  progress,
  readScenario,
  scenarioText,
  seedCount,
  seedsFlag,
} from '../simulation-flags.ts';

export const simulateSweep: Command = {
  name: 'simulate sweep',
  summary: 'one figure over a grid of one or two parameters',
  operands: '<scenario>',
  flags: {
    vary: { value: 'path=values', many: true, says: 'policy.attempts=1..6, or any path of the scenario' },
    metric: { value: 'metric', says: 'what to measure, such as "p99 of web from 60s"; goodput unless given' },
    ...policyFlag,
    ...seedsFlag(3),
    ...outFlag,
  },
  examples: [
    'simulate sweep s03 --vary policy.attempts=1..6',
    'simulate sweep s03 --vary policy.attempts=1..6 --vary policy.budget.ratio=0.05,0.1,0.2 --out heat.html',
  ],
  async run(given, terminal) {
    const axes = (given.lists.vary ?? []).map((text) => asUsageError(() => parseAxis(text, '--vary')));
    if (axes.length < 1 || axes.length > 2)
      throw new UsageError(`--vary is needed once or twice, got ${axes.length}.`);
    const { bound } = asUsageError(() =>
      parseAssertion(`${textOf(given, 'metric') ?? 'goodput'} >= 0`, '--metric'),
    );
    const source = await scenarioText(given);
    const scenario = readScenario(source);
    assertMeasurable(scenario, '--metric', [bound]);
    const { names, policies } = await policiesOf(given, scenario);
    // Without `--policy`, use `holdfast` if the scenario compares it. Otherwise use the first policy.
    const policy =
      (given.lists.policy ?? []).length > 0 || !names.includes('holdfast') ? names[0]! : 'holdfast';
    const document = readDocument(source.text, source.file).data as Record<string, unknown>;
    const seeds = seedCount(given, 3);
    await using pool = new RunPool(undefined, terminal.signal);
    const question = { document, file: source.file, policy, policies, axes, bound, seeds };
    const found = await sweep(question, pool, progress(terminal, given, 'runs'));
    const out = textOf(given, 'out');
    terminal.out(given.flags.json ? JSON.stringify(found) : fitReport(heatText(found), terminal.columns));
    if (out !== undefined) await writeText(out, heatHtml(found));
    return 0;
  },
};
