import { comparePolicies, RunPool, reportCsv, reportHtml, reportText, seedsOf } from '@holdfast/simulator';
import type { Command } from '../command.ts';
import { writeText } from '../files.ts';
import { fitReport } from '../fit-report.ts';
import { textOf } from '../given-values.ts';
import {
  assertionsOf,
  assertMeasurable,
  broken,
  outFlag,
  policiesOf,
  policyFlag,
  progress,
  readScenario,
  scenarioText,
  seedCount,
  seedsFlag,
} from '../simulation-flags.ts';

export const simulate: Command = {
  name: 'simulate',
  summary: 'try policies in a storm, side by side, before it comes',
  operands: '<scenario>',
  flags: {
    ...policyFlag,
    ...seedsFlag(5),
    ...outFlag,
    csv: { says: 'print figures by the second, for a spreadsheet' },
    assert: { value: 'bound', many: true, says: 'exit 1 unless it holds: "recovery < 30s"' },
  },
  examples: [
    'simulate s03',
    'simulate s03 --policy policies.yaml --out report.html',
    "simulate my-storm.yaml --assert 'recovery < 30s' --assert 'success > 99%'",
  ],
  async run(given, terminal) {
    const assertions = assertionsOf(given);
    const scenario = readScenario(await scenarioText(given));
    const { names, policies } = await policiesOf(given, scenario);
    const seeds = seedsOf(scenario, seedCount(given, Math.min(5, scenario.seeds.length)));
    const measure = assertions.map(({ bound }) => bound);
    assertMeasurable(scenario, '--assert', measure);
    await using pool = new RunPool(undefined, terminal.signal);
    const onProgress = progress(terminal, given, 'runs');
    const comparison = await comparePolicies(scenario, names, pool, { policies, seeds, measure, onProgress });
    const sentences = comparison.policies.flatMap(({ policy, measured }) =>
      assertions.flatMap((assertion, index) => broken(assertion, policy, measured[index]!) ?? []),
    );
    const out = textOf(given, 'out');
    if (given.flags.json) terminal.out(JSON.stringify({ ...comparison, broken: sentences }));
    else if (given.flags.csv) terminal.out(reportCsv(comparison).trimEnd());
    else terminal.out(fitReport(reportText(comparison), terminal.columns));
    // The figures are printed before this, so they are not lost if the file cannot be written.
    if (out !== undefined) await writeText(out, reportHtml(comparison));
    if (out !== undefined && !given.flags.json && !given.flags.csv)
      terminal.out(`\nThe report is in ${out}.`);
    for (const sentence of sentences) terminal.err(sentence);
    return sentences.length > 0 ? 1 : 0;
  },
};
