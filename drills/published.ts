import { comparedIn, RunPool, tryPolicy } from '@holdfast/simulator';
import {
  awsTable,
  cellOf,
  contention,
  contentionTrials,
  published,
  strategies,
} from '../packages/simulator/test/published.ts';
import type { DrillOptions } from '../scripts/drill.ts';

/**
 * Every cell of the AWS experiment: calls within 1 % and time within 3 %, or within four standard errors. And the one
 * file that is too long for a test.
 */
export async function drill({ times = 1000 }: DrillOptions): Promise<Record<string, number>> {
  const missed: string[] = [];
  let cells = 0;
  let callsOffMost = 0;
  let msOffMost = 0;
  await using pool = new RunPool();
  for (const [clients, ...row] of awsTable) {
    const scenario = contention(clients);
    for (const [index, [calls, ms]] of row.entries()) {
      const policy = strategies[index]!;
      const answers = await pool.run(contentionTrials(scenario, clients, policy, times));
      const callsCell = cellOf(
        answers.map(({ figures }) => figures[0]!),
        calls,
      );
      const msCell = cellOf(
        answers.map(({ figures }) => 1000 * figures[1]!),
        ms,
      );
      cells++;
      callsOffMost = Math.max(callsOffMost, callsCell.off);
      msOffMost = Math.max(msOffMost, msCell.off);
      // Small figures were printed with one digit, which may be half a percent of them.
      const isMet =
        callsCell.off <= Math.max(0.01, 4 * callsCell.noise) &&
        msCell.off <= Math.max(0.03, 4 * msCell.noise);
      if (!isMet) missed.push(`${clients} clients, ${policy}: ${callsCell.mean} calls, ${msCell.mean} ms`);
    }
  }
  missed.push(...tailAtScale());
  if (missed.length > 0)
    throw new Error(`Of ${cells} cells and two tails these are off:\n${missed.join('\n')}`);
  return {
    cells,
    'trials of each': times,
    'calls off at most, %': Number((100 * callsOffMost).toFixed(2)),
    'time off at most, %': Number((100 * msOffMost).toFixed(2)),
  };
}

/** The bounds of the file that are missed. */
function tailAtScale(): string[] {
  const scenario = published('tail-at-scale');
  return comparedIn(scenario).flatMap((policy) => {
    const { findings, damage } = tryPolicy(scenario, policy);
    return [...findings, ...damage]
      .filter(({ met }) => !met)
      .map(({ what, figure }) => `${scenario.id}, ${policy}: ${what} ${figure}`);
  });
}
