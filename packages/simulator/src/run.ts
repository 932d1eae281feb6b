import type { Bound, Scenario } from '@holdfast/config';
import { type PolicySpec, policy } from 'holdfast';
import type { RunReport } from './results.ts';
import { simulate, simulateAsync } from './simulate.ts';

/** One run to make, as plain data: it can be sent to another thread. */
export interface RunRequest {
  readonly scenario: Scenario;
  /** The policy under test. */
  readonly policy: string;
  readonly policies?: ReadonlyMap<string, PolicySpec> | undefined;
  readonly seed: number;
  readonly durationMs?: number | undefined;
  /** What to measure. */
  readonly bounds?: readonly Bound[] | undefined;
  /** Whether to return the whole report. */
  readonly report?: boolean | undefined;
}

export interface RunAnswer {
  readonly policy: string;
  readonly seed: number;
  readonly hash: string;
  /** In the order of `bounds`; Infinity: never, NaN: nothing to measure. */
  readonly figures: readonly number[];
  readonly report: RunReport | undefined;
}

/** Makes one run, with the driver that its policies need. */
export async function perform(request: RunRequest): Promise<RunAnswer> {
  const { scenario, bounds = [], report, ...options } = request;
  const results = needsPromises(request)
    ? await simulateAsync(scenario, options)
    : simulate(scenario, options);
  return {
    policy: request.policy,
    seed: request.seed,
    hash: results.hash,
    figures: bounds.map((bound) => results.figure(bound.metric, bound)),
    report: report ? results.report() : undefined,
  };
}

/** Cache, fallback and mode are layers of promises around the work. */
function needsPromises({ scenario, policy: tested, policies }: RunRequest): boolean {
  const { clients, services } = scenario;
  const calls = Object.values(services).flatMap(({ calls: its, routes }) => [
    ...its,
    ...Object.values(routes).flatMap((route) => route.calls),
  ]);
  const named = [tested, ...[...Object.values(clients), ...calls].map(({ policy: name }) => name)];
  return named.some((name) => {
    const spec = scenario.policies[name] ?? policies?.get(name);
    if (!spec?.cache && !spec?.fallback && !spec?.mode) return false;
    const { name: _, ...fields } = spec;
    return policy(fields).plan.runLayers !== undefined;
  });
}
