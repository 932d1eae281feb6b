import type { Bound, Scenario } from '@holdfast/config';
import { type PolicySpec, policy } from 'holdfast';
import type { RunReport } from './results.ts';
import { simulate, simulateAsync } from './simulate.ts';

/** The arguments of one simulation run, as plain data that can be sent to a worker thread. */
export interface RunRequest {
  readonly scenario: Scenario;
  readonly policy: string;
  readonly policies?: ReadonlyMap<string, PolicySpec> | undefined;
  readonly seed: number;
  readonly durationMs?: number | undefined;
  readonly bounds?: readonly Bound[] | undefined;
  readonly report?: boolean | undefined;
}

/** The result of one run, as plain data that a worker thread can send back. */
export interface RunAnswer {
  readonly policy: string;
  readonly seed: number;
  readonly hash: string;
  /**
   * One figure for each of `bounds` (limits for figures). Infinity: the event, such as a recovery, never
   * happened. NaN: nothing was measured.
   */
  readonly figures: readonly number[];
  readonly report: RunReport | undefined;
}

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

/** The policy parts cache, fallback and mode are async functions, so they need promises. */
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
