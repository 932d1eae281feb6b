import { type Assertion, holds, type Scenario } from '@holdfast/config';
import type { PolicySpec, Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { median } from '../estimates.ts';
import type { RunRequest } from '../run.ts';
import type { RunPool } from '../run-pool.ts';
import { seedsOf } from '../sweep.ts';
import { type Goal, goalsIn, kindness, missedBy, patienceFor, unkindness } from './goal.ts';
import {
  crossed,
  type Genome,
  mutated,
  policyOf,
  possible,
  randomGenome,
  unchanged,
} from './policy-space.ts';

/** How a policy did in the storms: lower is better, and 0 is the goal and nothing to wish for. */
export interface Score {
  readonly policy: PolicySpec;
  readonly loss: number;
  readonly evidence: readonly Evidence[];
}

/** What was asked of a storm and what was measured; null: never. */
export interface Evidence {
  readonly storm: string;
  readonly asked: string;
  readonly figure: number | null;
  readonly met: boolean;
}

export interface TuneOptions {
  readonly goal: Goal;
  /** Started from, and what is kept of everything the search does not choose. */
  readonly base: PolicySpec;
  readonly storms: readonly Scenario[];
  /** Policies that are tried in all storms. */
  readonly trials?: number | undefined;
  /** Of each storm. */
  readonly seeds?: number | undefined;
  /** Of the search itself. */
  readonly seed?: number | undefined;
  readonly onProgress?: ((done: number, of: number, best: Score) => void) | undefined;
}

const TRIALS = 64;
/** Tried side by side before the next are chosen. */
const BROOD = 8;
/** Of those so far, so many have children. */
const PARENTS = 6;

/** Searches for the policy that is nearest to a goal, by small changes of the best so far. */
export async function tune(options: TuneOptions, pool: RunPool): Promise<Score> {
  const random = seededRandom('tune', options.seed ?? 1);
  const patience = patienceFor(options.goal);
  const base: PolicySpec = { ...options.base, ...(patience !== undefined && { patience }) };
  return search({ ...options, base }, pool, (ranked) => {
    // It starts at what is known to be good, so that nothing worse can come out.
    const [parents, known] = ranked.length > 0 ? [ranked.slice(0, PARENTS), []] : [[unchanged], [unchanged]];
    const brood = children(parents, BROOD - known.length - 1, base, random);
    return [...known, ...brood, ...strangers(1, base, random)];
  });
}

/** The same number of policies, by chance alone: what a search has to beat. */
export async function searchByChance(options: TuneOptions, pool: RunPool): Promise<Score> {
  const random = seededRandom('chance', options.seed ?? 1);
  return search(options, pool, () => strangers(BROOD, options.base, random));
}

/** How policies do in storms. */
export async function scorePolicies(
  policies: readonly PolicySpec[],
  { goal, storms, seeds = 1 }: Pick<TuneOptions, 'goal' | 'storms' | 'seeds'>,
  pool: RunPool,
): Promise<Score[]> {
  const asked = storms.map((storm) => goalsIn(goal, storm));
  const requests = policies.flatMap((policy) =>
    storms.flatMap((storm, index) =>
      seedsOf(storm, seeds).map((seed): RunRequest => {
        const bounds = [...asked[index]!.map(({ bound }) => bound), ...kindness];
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
      const goals = asked[index]!;
      loss += unkindness(figures.slice(goals.length));
      return goals.map((assertion, at) => {
        loss += missedBy(assertion, figures[at]!);
        return evidenceOf(storm, assertion, figures[at]!);
      });
    });
    return { policy, loss: loss / storms.length, evidence };
  });
}

async function search(
  options: TuneOptions,
  pool: RunPool,
  choose: (ranked: readonly Genome[]) => readonly Genome[],
): Promise<Score> {
  const { base, trials = TRIALS, onProgress } = options;
  const scores = new Map<string, { genome: Genome; score: Score }>();
  let tried = 0;
  let best: Score | undefined;
  while (tried < trials || !best) {
    const ranked = [...scores.values()]
      .sort((a, b) => a.score.loss - b.score.loss)
      .map(({ genome }) => genome);
    const brood = choose(ranked).slice(0, trials - tried);
    const scored = await scorePolicies(
      brood.map((genome) => policyOf(genome, base)),
      options,
      pool,
    );
    for (const [index, score] of scored.entries()) {
      scores.set(brood[index]!.join(), { genome: brood[index]!, score });
      if (!best || score.loss < best.loss) best = score;
    }
    tried += brood.length;
    onProgress?.(tried, trials, best!);
  }
  return best;
}

function children(parents: readonly Genome[], count: number, base: PolicySpec, random: Random): Genome[] {
  const any = () => parents[Math.floor(random() * parents.length)]!;
  const child = () => {
    const one = any();
    return mutated(parents.length > 1 && random() < 0.3 ? crossed(one, any(), random) : one, random);
  };
  return Array.from({ length: count }, () => possible(base, child));
}

function strangers(count: number, base: PolicySpec, random: Random): Genome[] {
  return Array.from({ length: count }, () => possible(base, () => randomGenome(random)));
}

function evidenceOf({ id }: Scenario, assertion: Assertion, figure: number): Evidence {
  return {
    storm: id,
    asked: assertion.text,
    figure: Number.isFinite(figure) ? figure : null,
    met: holds(assertion, figure),
  };
}
