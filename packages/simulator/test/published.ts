import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAssertion, parseScenario, type Scenario } from '@holdfast/config';
import {
  definePart,
  definePolicy,
  http,
  network,
  type Policy,
  type PolicySpec,
  retry,
  timeout,
} from 'holdfast';
import type { RunRequest } from '../src/index.ts';

const folder = path.join(import.meta.dirname, '../published');

export const publishedNames: readonly string[] = readdirSync(folder).map((file) => path.parse(file).name);

/** A published experiment by its file; `edit` changes the text as its comments say. */
export function published(name: string, edit: (text: string) => string = (text) => text): Scenario {
  const file = path.join(folder, `${name}.yaml`);
  return parseScenario(edit(readFileSync(file, 'utf8')), file);
}

/** A chain of `depth` callers, of which each makes `attempts`; the leaf fails with a chance of `p`. */
export function layers(depth: number, attempts: number, p: number, seconds: number): Scenario {
  const tiers = Array.from({ length: depth - 1 }, (_, tier) => `t${tier}: { calls: [{ to: t${tier + 1} }] }`);
  return parseScenario(`
id: layers
duration: ${seconds}s
services: { ${[...tiers, `t${depth - 1}: {}`].join(', ')} }
clients: { user: { to: t0, arrivals: { constant: 10/s } } }
faults: [{ kind: errorRate, value: ${p}, service: t${depth - 1}, from: 0s }]
policies: { p: { attempts: ${attempts}, backoff: false, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
`);
}

export const strategies = ['none', 'expo', 'equal', 'full', 'decorrelated'] as const;

/** Of "Exponential Backoff And Jitter", run anew in Python and in Node: for each strategy, calls and ms. */
export const awsTable: readonly (readonly [
  clients: number,
  ...cells: readonly (readonly [calls: number, ms: number])[],
])[] = [
  [1, [1, 40], [1, 40], [1, 40], [1, 40], [1, 40]],
  [2, [3, 82], [3, 92], [3, 89], [3, 87], [3, 92]],
  [5, [14.9, 207], [14.9, 353], [14.8, 308], [14.3, 252], [13.8, 255]],
  [10, [50.7, 379], [50.7, 3421], [42.4, 724], [39, 459], [37.5, 434]],
  [20, [152.6, 603], [149.9, 14456], [108, 1615], [100.2, 1001], [101, 818]],
  [30, [288.2, 779], [276.3, 22361], [182.6, 2593], [171.4, 1671], [180.3, 1245]],
  [40, [466.4, 958], [435.5, 29450], [262.8, 3507], [249.6, 2326], [272.3, 1715]],
  [50, [689.3, 1139], [622.4, 36336], [347.2, 4243], [332.7, 2911], [374.8, 2213]],
  [60, [955.8, 1323], [831.3, 42636], [435.4, 4844], [419.4, 3409], [486.4, 2703]],
  [70, [1262, 1501], [1057, 48211], [525.7, 5358], [509.4, 3806], [605, 3231]],
  [80, [1609, 1679], [1303, 53708], [619.2, 5821], [602.2, 4189], [731.3, 3716]],
  [90, [1997, 1855], [1569, 58523], [714.7, 6221], [698, 4575], [863.8, 4149]],
  [100, [2423, 2027], [1855, 63477], [812.2, 6647], [796, 4897], [1001, 4622]],
  [150, [5140, 2876], [3544, 85687], [1324, 8258], [1318, 6413], [1760, 6520]],
  [190, [8005, 3538], [5162, 101199], [1760, 9403], [1772, 7456], [2435, 7877]],
];

/** The scenario of one row of that table. */
export function contention(clients: number): Scenario {
  const scenario = published('aws-contention');
  return { ...scenario, clients: { writers: { ...scenario.clients.writers!, count: clients } } };
}

const contentionBounds = [parseAssertion('attempts >= 0').bound, parseAssertion('finish >= 0').bound];

/** The runs of one cell of that table; their figures are calls and seconds. */
export function contentionTrials(
  scenario: Scenario,
  clients: number,
  policy: string,
  times: number,
): RunRequest[] {
  return Array.from({ length: times }, (_, trial) => ({
    scenario,
    policy,
    seed: 31 * trial + clients,
    bounds: contentionBounds,
  }));
}

export interface Cell {
  readonly mean: number;
  /** From what was published, as a share of it. */
  readonly off: number;
  /** The standard error of the mean, as a share of it. */
  readonly noise: number;
}

export function cellOf(samples: readonly number[], expected: number): Cell {
  const mean = samples.reduce((sum, each) => sum + each, 0) / samples.length;
  const variance =
    samples.reduce((sum, each) => sum + (each - mean) ** 2, 0) / Math.max(1, samples.length - 1);
  return { mean, off: Math.abs(mean / expected - 1), noise: Math.sqrt(variance / samples.length) / mean };
}

/** Brooker's table: for each chance of failure, success and load in percent. */
export const brookerTable: readonly (readonly [
  p: number,
  ...cells: readonly (readonly [success: number, load: number])[],
])[] = [
  [0.02, [98.1, 100], [100, 102], [100, 102], [99.98, 102]],
  [0.05, [95.2, 100], [100, 105.2], [99.98, 105.3], [99.8, 105.2]],
  [0.1, [90, 100], [99.99, 111.1], [98.4, 109.5], [92.7, 103.2]],
  [0.2, [79.9, 100], [99.8, 124.8], [88.3, 110.4], [80, 100]],
  [0.3, [70, 100], [99.2, 141.7], [77.4, 110.4], [69.9, 100]],
  [0.5, [50, 100], [93.8, 187.1], [54.8, 110.4], [50.1, 100]],
  // Three retries by the closed form, as no run of his is printed to the digit.
  [0.75, [24.9, 100], [68.36, 273.4], [27.6, 110.4], [25, 100]],
];
export const brookerPolicies = ['none', 'threeRetries', 'adaptive', 'lifetimeBreaker'] as const;

export function brooker(p: number, changes: { count?: number; rate?: number } = {}): Scenario {
  const scenario = published('brooker-failures');
  const { app } = scenario.clients;
  const arrivals = { ...app!.arrivals, poisson: changes.rate ?? app!.arrivals.poisson };
  return {
    ...scenario,
    clients: { app: { ...app!, arrivals, failing: p, count: changes.count ?? app!.count } },
    // The two that no document of ours can say: they are made below.
    policies: {
      ...scenario.policies,
      adaptive: { ...scenario.policies.threeRetries, attempts: 'unlimited', patience: '10m' },
      lifetimeBreaker: scenario.policies.threeRetries!,
    },
  };
}

/** His bucket: five tokens at first and at most, a tenth for each call that begins, and a retry needs more than one. */
const bucket = definePart({
  key: 'bucket',
  fields: {},
  create(_settings, plan) {
    let tokens = 5;
    const its = {
      tokens: () => (tokens > 1 ? tokens : 0),
      startRetry: () => {
        tokens -= 1;
      },
      success() {},
      retrySucceeded() {},
      retryFailed() {},
      retryDropped() {},
    };
    plan.budgetOf = () => {
      tokens = Math.min(5, tokens + 0.1);
      return its as never;
    };
  },
});

/** His breaker: no retries while more than a tenth of all calls so far have failed. It is asked once after each failure. */
const lifetimeBreaker = definePart({
  key: 'lifetimeBreaker',
  fields: {},
  create(_settings, plan) {
    let calls = 0;
    let failures = 0;
    const its = {
      tokens() {
        failures++;
        return failures / calls > 0.1 ? 0 : 1;
      },
      startRetry() {},
      success() {},
      retrySucceeded() {},
      retryFailed() {},
      retryDropped() {},
    };
    plan.budgetOf = () => {
      calls++;
      return its as never;
    };
  },
});

const makers = {
  adaptive: definePolicy([retry, timeout, bucket, network, http]),
  lifetimeBreaker: definePolicy([retry, timeout, lifetimeBreaker, network, http]),
};

/** Makes a policy of the table: production's `decide`, with his bucket or breaker in the place of ours. */
export function brookerMaker(name: string): ((spec: PolicySpec, environment: never) => Policy) | undefined {
  const make = makers[name as keyof typeof makers];
  if (!make) return undefined;
  return ({ budget: _, breaker: __, ...spec }, environment) => make(spec as never, environment) as Policy;
}
