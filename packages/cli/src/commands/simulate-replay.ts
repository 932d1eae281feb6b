import {
  comparePolicies,
  RunPool,
  readIncident,
  reportHtml,
  reportText,
  stormPolicies,
} from '@holdfast/simulator';
import type { Command } from '../command.ts';
import { readText, writeText } from '../files.ts';
import { fitReport } from '../fit-report.ts';
import { onlyOperand, textOf } from '../given-values.ts';
import {
  assertionsOf,
  assertMeasurable,
  broken,
  outFlag,
  policiesOf,
  policyFlag,
  progress,
} from '../simulation-flags.ts';

export const simulateReplay: Command = {
  name: 'simulate replay',
  summary: 'what another policy would have made of a recorded incident',
  operands: '<notices.ndjson>',
  flags: {
    ...policyFlag,
    of: { value: 'policy', says: 'only notices of this policy' },
    target: { value: 'target', says: 'only notices about this target' },
    ...outFlag,
    assert: { value: 'bound', many: true, says: 'exit 1 unless it holds: "success > 99%"' },
  },
  examples: ['simulate replay incident.ndjson --policy policies.yaml'],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a file of notices');
    const assertions = assertionsOf(given);
    const filter = { policy: textOf(given, 'of'), target: textOf(given, 'target') };
    const { scenario, recorded } = readIncident((await readText(file)).split('\n'), filter, file);
    const known = { ...scenario, compare: ['holdfast'] };
    const measure = assertions.map(({ bound }) => bound);
    assertMeasurable(scenario, '--assert', measure);
    const { names, policies } = await policiesOf(given, known);
    await using pool = new RunPool(undefined, terminal.signal);
    const comparison = await comparePolicies(known, names, pool, {
      policies: new Map([...stormPolicies(), ...policies]),
      measure,
      onProgress: progress(terminal, given, 'runs'),
    });
    const sentences = comparison.policies.flatMap(({ policy, measured }) =>
      assertions.flatMap((assertion, index) => broken(assertion, policy, measured[index]!) ?? []),
    );
    const out = textOf(given, 'out');
    if (given.flags.json) terminal.out(JSON.stringify({ recorded, ...comparison, broken: sentences }));
    else {
      const { begun, success, multiplication, p50, p99 } = recorded;
      const waits =
        p50 === null ? '' : `, half within ${p50.toPrecision(3)} s, 99 % within ${p99!.toPrecision(3)} s`;
      terminal.out(
        `recorded: ${begun} pieces of work, ${(100 * success).toFixed(2)} % done with ${multiplication.toFixed(3)} attempts each${waits}\n`,
      );
      terminal.out(fitReport(reportText(comparison), terminal.columns));
    }
    if (out !== undefined) await writeText(out, reportHtml(comparison));
    for (const sentence of sentences) terminal.err(sentence);
    return sentences.length > 0 ? 1 : 0;
  },
};
