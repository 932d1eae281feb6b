import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parsePolicies, parseScenario, type Scenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';

const folder = path.join(import.meta.dirname, '../storms');

/** The policies that storms are run with. */
export const library: ReadonlyMap<string, PolicySpec> = parsePolicies(
  readFileSync(path.join(folder, 'policies.yaml'), 'utf8'),
  'policies.yaml',
);

/** Every scenario of the suite by its file. */
export const storms: ReadonlyMap<string, Scenario> = new Map(
  readdirSync(folder)
    .filter((file) => /^s\d/.test(file))
    .map((file) => [file, parseScenario(readFileSync(path.join(folder, file), 'utf8'), file)]),
);

/** A policy that tries once and has no opinion. */
const once = '{ attempts: 1, patience: unlimited, attemptTimeout: none, budget: false, breaker: false }';

/** A scenario of one service and one class of clients. */
export function queueOf(service: string, rate: string, seconds: number, more = ''): Scenario {
  return parseScenario(`
id: queue
duration: ${seconds}s
services: { s: { ${service} } }
clients: { c: { to: s, arrivals: { poisson: ${rate} } } }
policies: { once: ${once} }
${more}
`);
}

/** How far the mean of independent samples is from what is expected, in standard errors. */
export function zScore(samples: readonly number[], expected: number): number {
  const mean = samples.reduce((sum, each) => sum + each, 0) / samples.length;
  const variance = samples.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (samples.length - 1);
  return (mean - expected) / Math.sqrt(variance / samples.length);
}

/** A storm in a tenth of its time with a thirtieth of its clients: not the same storm, but one with all of its parts. */
export function shortened(scenario: Scenario): Scenario {
  const tenth = (ms: number) => ms / 10;
  const clients = Object.entries(scenario.clients).map(([name, its]) => {
    const { burst, spikes } = its.arrivals;
    const arrivals = {
      ...its.arrivals,
      burst: burst === undefined ? undefined : tenth(burst),
      spikes: spikes.map((each) => ({ ...each, from: tenth(each.from), until: tenth(each.until) })),
    };
    return [name, { ...its, arrivals, count: Math.ceil(its.count / 30) }];
  });
  return {
    ...scenario,
    duration: tenth(scenario.duration),
    clients: Object.fromEntries(clients),
    faults: scenario.faults.map((each) => ({ ...each, from: tenth(each.from), until: tenth(each.until) })),
  } as Scenario;
}
