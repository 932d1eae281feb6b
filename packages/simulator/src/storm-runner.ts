import { parsePolicies, parseScenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';
import { comparePolicies } from './comparison.ts';
import type { Band } from './estimates.ts';
import { RunPool } from './run-pool.ts';
import { stormNames, stormPolicies, stormText } from './storm-files.ts';
import { seedsOf } from './sweep.ts';

/** The result of one policy in a storm (a scenario with faults), for display on a page. */
export interface StormRow {
  readonly name: string;
  /** One phrase that says whether the policy meets the bounds (limits for figures) of the scenario. */
  readonly verdict: string;
  readonly figures: Readonly<Record<string, number>>;
  /** Successes per second over the time of the scenario; at most 200 points. */
  readonly goodput: readonly number[];
  /** Attempts per second over the time of the scenario; at most 200 points. */
  readonly load: readonly number[];
}

/** Runs the storms of this package (scenarios with faults) by name. */
export interface StormRunner {
  scenarios(): readonly { readonly name: string; readonly summary: string }[];
  /**
   * Runs the policies of a YAML document beside the default policies. An invalid document rejects with a
   * readable message.
   */
  run(
    scenario: string,
    policy: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (share: number) => void },
  ): Promise<StormRow[]>;
}

/** The number of runs of each policy. Three show a difference, and take only seconds. */
const seedsEach = 3;
const pointsMax = 200;
const shown = ['success', 'multiplication', 'recovery', 'p99', 'goodput'] as const;

/**
 * Creates a runner for the storms (scenarios with faults) of this package. The console's simulator page uses
 * it.
 */
export function stormRunner(): StormRunner {
  const scenarios = stormNames().map((name) => ({
    name,
    summary: parseScenario(stormText(name), `${name}.yaml`).title,
  }));
  return {
    scenarios: () => scenarios,

    async run(name, text, { signal, onProgress }) {
      const scenario = parseScenario(stormText(name), `${name}.yaml`);
      const policies = new Map<string, PolicySpec>(stormPolicies());
      const proposed = [...parsePolicies(text, 'the policy')].map(([own, { name: _, ...spec }]) => {
        policies.set(own, spec);
        return own;
      });
      await using pool = new RunPool(1, signal);
      const names = [...new Set([...proposed, 'holdfast', 'none'])].filter(
        (each) => policies.has(each) || Object.hasOwn(scenario.policies, each),
      );
      const comparison = await comparePolicies(scenario, names, pool, {
        policies,
        seeds: seedsOf(scenario, Math.min(seedsEach, scenario.seeds.length)),
        onProgress: (done, of) => onProgress(done / of),
      });
      return comparison.policies.map(({ policy, trial, groups }) => {
        const all = groups[0];
        const missed = trial.findings.filter(({ met }) => !met).map(({ metric }) => metric);
        const figures = shown.flatMap((each) => {
          const figure = all?.figures[each]?.median;
          return typeof figure === 'number' ? [[each, figure] as const] : [];
        });
        return {
          name: policy,
          verdict: missed.length === 0 ? 'holds every bound' : `misses ${missed.join(', ')}`,
          figures: Object.fromEntries(figures),
          goodput: thinned(all?.series.goodput),
          load: thinned(all?.series.attempts),
        };
      });
    },
  };
}

function thinned(band: Band | undefined): number[] {
  const points = band?.mean ?? [];
  const every = Math.max(1, Math.ceil(points.length / pointsMax));
  return points
    .filter((_, index) => index % every === 0)
    .map((value) => Math.round((value ?? 0) * 100) / 100);
}
