import { type Assertion, holds, type Scenario } from '@holdfast/config';
import type { PolicySpec, Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { median } from '../estimates.ts';
import type { RunRequest } from '../run.ts';
import type { RunPool } from '../run-pool.ts';
import { seedsOf } from '../sweep.ts';
import {
  assertGoalMeasurable,
  type Goal,
  goalsIn,
  kindness,
  missedBy,
  patienceFor,
  unkindness,
} from './goal.ts';
import {
  crossed,
  type Genome,
  isPossible,
  mutated,
  policyOf,
  possible,
  randomGenome,
  timeoutsOf,
  unchanged,
} from './policy-space.ts';

/** The result of a policy in all storms (scenarios with faults). A lower `loss` is better. */
export interface Score {
  readonly policy: PolicySpec;
  readonly loss: number;
  readonly evidence: readonly Evidence[];
}

/** One assertion of the goal, and the figure that was measured in one storm (a scenario with faults). */
export interface Evidence {
  readonly storm: string;
  readonly goal: string;
  readonly figure: number | null;
  readonly met: boolean;
}

/**
 * The options of `tune`. With more `trials` and `seeds` the search takes longer and finds better policies.
 */
export interface TuneOptions {
  /** The goal that the policy must reach, as `parseGoal` returns it. Required. */
  readonly goal: Goal;
  /** The policy from which the search starts. Settings outside of the search stay as they are. Required. */
  readonly base: PolicySpec;
  /** The scenarios in which each policy is tried. Required. */
  readonly storms: readonly Scenario[];
  /** The number of policies to try. Each is tried in all scenarios of `storms`. Default: `64`. */
  readonly trials?: number | undefined;
  /** The number of runs of a policy in each scenario. Default: `1`. */
  readonly seeds?: number | undefined;
  /** The seed of the search itself. Default: `1`. */
  readonly seed?: number | undefined;
  /** Called after each policy that was tried. Default: none. */
  readonly onProgress?: ((done: number, of: number, best: Score) => void) | undefined;
}

const TRIALS = 64;
/** The number of policies that are tried in parallel. */
const BROOD = 8;
/** The number of best policies that are tried again with more seeds at the end. */
const FINALISTS = 4;
/** The number of best policies from which new policies are made. */
const PARENTS = 6;

/**
 * Searches for the policy that comes nearest to a goal. It makes small changes to the best policies so far.
 * At the end it tries the best few with more seeds, to exclude lucky results.
 */
export async function tune(options: TuneOptions, pool: RunPool): Promise<Score> {
  const { trials = TRIALS, seeds = 1, onProgress } = options;
  const random = seededRandom('tune', options.seed ?? 1);
  const patience = patienceFor(options.goal);
  const base: PolicySpec = { ...options.base, ...(patience !== undefined && { patience }) };
  const finalSeeds = Math.max(2, Math.floor(trials / (4 * FINALISTS)));
  const explored = Math.max(1, trials - FINALISTS * finalSeeds);
  const ranked = await search({ ...options, base, trials: explored }, pool, (genomes) => {
    // The search starts with the given policy itself, so the result is never worse than that policy.
    if (genomes.length === 0)
      return [unchanged, ...timeoutsOf.filter((genome) => isPossible(policyOf(genome, base), true))];
    return children(genomes.slice(0, PARENTS), BROOD, base, random);
  });
  const finalists = ranked.slice(0, FINALISTS).map(({ policy }) => policy);
  const scores = await scorePolicies(finalists, { ...options, seeds: seeds * finalSeeds }, pool);
  const best = scores.reduce((one, other) => (other.loss < one.loss ? other : one));
  onProgress?.(trials, trials, best);
  return best;
}

/**
 * Tries as many random policies as `tune` does, and returns the best. Tests check that `tune` finds a better
 * one.
 */
export async function searchByChance(options: TuneOptions, pool: RunPool): Promise<Score> {
  const random = seededRandom('chance', options.seed ?? 1);
  const stranger = () => possible(options.base, false, () => randomGenome(random));
  const [best] = await search(options, pool, () => Array.from({ length: BROOD }, stranger));
  return best!;
}

/** Runs each policy in each scenario of `storms` and rates the results. */
export async function scorePolicies(
  policies: readonly PolicySpec[],
  { goal, storms, seeds = 1 }: Pick<TuneOptions, 'goal' | 'storms' | 'seeds'>,
  pool: RunPool,
): Promise<Score[]> {
  const goalsOf = storms.map((storm) => goalsIn(goal, storm));
  const requests = policies.flatMap((policy) =>
    storms.flatMap((storm, index) =>
      seedsOf(storm, seeds).map((seed): RunRequest => {
        const bounds = [...goalsOf[index]!.map(({ bound }) => bound), ...kindness];
        return {
          scenario: { ...storm, policies: { ...storm.policies, tuned: policy } },
          policy: 'tuned',
          seed,
          bounds,
        };
      }),
    ),
  );
  const answers = await pool.run(requests);
  let next = 0;
  return policies.map((policy) => {
    let loss = 0;
    const evidence = storms.flatMap((storm, index) => {
      const runs = answers.slice(next, next + seeds);
      next += seeds;
      const figures = Array.from({ length: runs[0]!.figures.length }, (_, at) =>
        median(runs.map((run) => run.figures[at]!)),
      );
      const goals = goalsOf[index]!;
      loss += unkindness(figures.slice(goals.length));
      return goals.map((assertion, at) => {
        loss += missedBy(assertion, figures[at]!);
        return evidenceOf(storm, assertion, figures[at]!);
      });
    });
    return { policy, loss: loss / storms.length, evidence };
  });
}

/** Resolves with all scores, the best first. */
async function search(
  options: TuneOptions,
  pool: RunPool,
  choose: (ranked: readonly Genome[]) => readonly Genome[],
): Promise<Score[]> {
  const { base, trials = TRIALS, onProgress } = options;
  assertGoalMeasurable(options.goal, options.storms);
  const found = new Map<string, { readonly genome: Genome; readonly score: Score }>();
  const ranked = () => [...found.values()].sort((a, b) => a.score.loss - b.score.loss);
  for (let tried = 0; tried < trials; ) {
    const brood = choose(ranked().map(({ genome }) => genome)).slice(0, trials - tried);
    const policies = brood.map((genome) => policyOf(genome, base));
    for (const [index, score] of (await scorePolicies(policies, options, pool)).entries()) {
      found.set(brood[index]!.join(), { genome: brood[index]!, score });
    }
    tried += brood.length;
    onProgress?.(tried, trials, ranked()[0]!.score);
  }
  return ranked().map(({ score }) => score);
}

function children(parents: readonly Genome[], count: number, base: PolicySpec, random: Random): Genome[] {
  const any = () => parents[Math.floor(random() * parents.length)]!;
  const child = () => {
    const one = any();
    return mutated(parents.length > 1 && random() < 0.3 ? crossed(one, any(), random) : one, random);
  };
  return Array.from({ length: count }, () => possible(base, true, child));
}

function evidenceOf({ id }: Scenario, assertion: Assertion, figure: number): Evidence {
  return {
    storm: id,
    goal: assertion.text,
    figure: Number.isFinite(figure) ? figure : null,
    met: holds(assertion, figure),
  };
}
