import type { Bound, Metric, Scenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';
import { median } from './estimates.ts';
import type { RunAnswer } from './run.ts';
import { type AnyRunOptions, simulate } from './simulate.ts';

/**
 * One bound of a scenario (a limit for a figure) and the figure that was measured. In `figure`, null stands
 * for infinite.
 */
export interface Finding {
  readonly metric: Metric;
  /** The measured figure in words: `goodput of web at api from 30 s`. */
  readonly what: string;
  readonly atLeast: number | null;
  readonly atMost: number | null;
  /** The median over all seeds; null if the event, such as a recovery, never happened. */
  readonly figure: number | null;
  readonly met: boolean;
}

/**
 * The result of testing one policy against all bounds of a scenario (limits for figures), over several seeds.
 */
export interface Trial {
  readonly policy: string;
  readonly pass: boolean;
  readonly findings: readonly Finding[];
  /** The damage that a bad policy must cause in this scenario. If it causes less, the simulation is wrong. */
  readonly damage: readonly Finding[];
  /** The hash of the run with each seed. */
  readonly hashes: readonly string[];
}

/** The options of a trial. More seeds take longer and give more reliable results. */
export interface TrialOptions extends AnyRunOptions {
  /** The seeds of the runs. Default: the seeds of the scenario. */
  readonly seeds?: readonly number[] | undefined;
}

/**
 * Runs a scenario with one policy and several seeds. Compares the median of each figure with the bounds
 * (limits) of the scenario.
 */
export function tryPolicy(scenario: Scenario, policy: string, options: TrialOptions = {}): Trial {
  const { seeds = scenario.seeds, ...rest } = options;
  const bounds = boundsOf(scenario, policy);
  const runs = seeds.map((seed) => {
    const results = simulate(scenario, { ...rest, policy, seed });
    return { hash: results.hash, figures: bounds.map((bound) => results.figure(bound.metric, bound)) };
  });
  return trialOf(scenario, policy, runs);
}

/**
 * Returns the bounds (limits for figures) that apply to a policy: first those of `expect`, then those of
 * `damage`.
 */
export function boundsOf(scenario: Scenario, policy: string): readonly Bound[] {
  return [...scenario.expect, ...scenario.damage].filter(({ policies }) => concerns(policies, policy));
}

/**
 * Builds a trial from finished runs. Each run must have one figure for each bound that `boundsOf` returns.
 */
export function trialOf(
  scenario: Scenario,
  policy: string,
  runs: readonly Pick<RunAnswer, 'hash' | 'figures'>[],
): Trial {
  const found = boundsOf(scenario, policy).map((bound, index) =>
    finding(bound, median(runs.map(({ figures }) => figures[index]!))),
  );
  const expected = scenario.expect.filter(({ policies }) => concerns(policies, policy)).length;
  const findings = found.slice(0, expected);
  return {
    policy,
    pass: findings.every(({ met }) => met),
    findings,
    damage: found.slice(expected),
    hashes: runs.map(({ hash }) => hash),
  };
}

/** The policies to compare: the scenario's list `compare`. If that list is empty: all its policies. */
export function comparedIn(scenario: Scenario): readonly string[] {
  return scenario.compare.length > 0 ? scenario.compare : Object.keys(scenario.policies);
}

/** Policy specs by name. */
export type PolicyLibrary = ReadonlyMap<string, PolicySpec>;

function concerns(policies: readonly string[] | undefined, policy: string): boolean {
  return policies === undefined || policies.includes(policy);
}

function finding(bound: Bound, figure: number): Finding {
  const { metric, atLeast, atMost } = bound;
  return {
    metric,
    what: words(bound),
    atLeast: atLeast ?? null,
    atMost: atMost ?? null,
    figure: Number.isFinite(figure) ? figure : null,
    met: figure >= (atLeast ?? -Infinity) && figure <= (atMost ?? Infinity),
  };
}

export function words({ metric, clients, service, instance, from, until, step }: Bound): string {
  const parts: string[] = [metric];
  if (step !== 1000) parts.push(`in ${step} ms`);
  if (clients !== undefined) parts.push(`of ${clients}`);
  if (service !== undefined) parts.push(`at ${service}${instance === undefined ? '' : `-${instance}`}`);
  if (from > 0) parts.push(`from ${from / 1000} s`);
  if (until < Infinity) parts.push(`until ${until / 1000} s`);
  return parts.join(' ');
}
