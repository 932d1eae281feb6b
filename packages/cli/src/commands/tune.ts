import { parsePolicies } from '@holdfast/config';
import {
  type Evidence,
  failingStorm,
  parseGoal,
  RunPool,
  type Score,
  scorePolicies,
  tune,
  tuningStorms,
  unseenStorms,
} from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { type Command, type Given, UsageError } from '../command.ts';
import { readText } from '../files.ts';
import { numberOf, textOf } from '../given-values.ts';
import { asUsageError, progress, readScenario, seedCount } from '../simulation-flags.ts';
import { bad, good, type StyledPiece, type StyledText } from '../styled-text.ts';
import { table } from '../table.ts';

const example = 'multiplication <= 1.2, success >= 99.5% at 5% failures, p99 <= 2s';

export const tunePolicy: Command = {
  name: 'tune',
  summary: 'search for the policy that reaches a goal, and show the evidence',
  flags: {
    goal: { value: 'bounds', says: `"${example}"` },
    policy: { value: 'file', says: 'start from this one; the default unless given' },
    scenario: { value: 'file', many: true, says: 'tune on this storm; on a set of its own unless given' },
    trials: { value: 'count', says: 'how many policies are tried; 64 unless given' },
    seeds: { value: 'count', says: 'how often each is tried in each storm; 1 unless given' },
    seed: { value: 'number', says: 'of the search: the same one finds the same policy' },
  },
  examples: ["tune --goal 'multiplication <= 1.2, success >= 99.5% at 5% failures'"],
  async run(given, terminal) {
    const text = textOf(given, 'goal');
    if (text === undefined) throw new UsageError(`--goal is needed, such as "${example}".`);
    const goal = asUsageError(() => parseGoal(text, '--goal'));
    const base = await startOf(given);
    const shares = [...new Set(goal.assertions.flatMap(({ failing }) => failing ?? []))];
    const own = await Promise.all(
      (given.lists.scenario ?? []).map(async (file) => readScenario({ text: await readText(file), file })),
    );
    const storms = [
      ...shares.map((share) => failingStorm(share)),
      ...(own.length > 0 ? own : tuningStorms()),
    ];
    const unseen = [...shares.map((share) => failingStorm(share, 160)), ...unseenStorms()];
    const trials = numberOf(given, 'trials') ?? 64;
    if (!(Number.isInteger(trials) && trials > 0))
      throw new UsageError(`--trials: expected a whole number above zero, got "${given.flags.trials}".`);
    const draw = progress(terminal, given, 'policies');
    await using pool = new RunPool(undefined, terminal.signal);
    const best = await tune(
      {
        goal,
        base,
        storms,
        trials,
        seeds: seedCount(given, 1),
        seed: numberOf(given, 'seed'),
        onProgress: (done, of, { loss }) => draw(done, of, `, the best is ${loss.toFixed(3)} from the goal`),
      },
      pool,
    );
    const [before, after] = await scorePolicies(
      [base, best.policy],
      { goal, storms: unseen, seeds: 3 },
      pool,
    );
    const isReached = best.evidence.every(({ met }) => met);
    if (given.flags.json) {
      terminal.out(
        JSON.stringify({
          policy: best.policy,
          isReached,
          loss: best.loss,
          evidence: best.evidence,
          unseen: { before, after },
        }),
      );
    } else {
      terminal.out(JSON.stringify(best.policy, null, 2));
      terminal.out(
        `\n${isReached ? 'It reaches the goal' : 'Nothing was found that reaches the goal; this is nearest'}, of ${trials} policies.\n`,
      );
      terminal.out('In the storms it was tuned on:');
      terminal.out(evidenceTable(best.evidence, terminal.columns));
      // There is no evidence if the goal names clients or services that these scenarios do not have.
      if (after!.evidence.length > 0) {
        terminal.out('\nIn storms it was not tuned on, with what it started from:');
        terminal.out(comparisonTable(before!, after!, terminal.columns));
      }
    }
    return isReached ? 0 : 1;
  },
};

async function startOf(given: Given): Promise<PolicySpec> {
  const file = textOf(given, 'policy');
  if (file === undefined) return {};
  const found = [...parsePolicies(await readText(file), file).values()];
  if (found.length !== 1)
    throw new UsageError(`--policy: ${file} holds ${found.length} policies; a search starts from one.`);
  const { name: _, ...spec } = found[0]!;
  return spec;
}

function evidenceTable(evidence: readonly Evidence[], columns: number | undefined): StyledText {
  return table(
    ['STORM', 'GOT', '', 'ASKED'],
    evidence.map(({ storm, figure, met, goal }) => [storm, say(figure), mark(met), goal]),
    columns,
  );
}

function comparisonTable(before: Score, after: Score, columns: number | undefined): StyledText {
  return table(
    ['STORM', 'BEFORE', 'TUNED', '', 'ASKED'],
    after.evidence.map(({ storm, figure, met, goal }, index) => [
      storm,
      say(before.evidence[index]!.figure),
      say(figure),
      mark(met),
      goal,
    ]),
    columns,
  );
}

function mark(met: boolean): StyledPiece {
  return met ? good('✓') : bad('✗');
}

function say(figure: number | null): string {
  return figure === null ? 'never' : `${Number(figure.toPrecision(4))}`;
}
