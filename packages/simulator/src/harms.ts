import { type Bound, parseAssertion, parseScenario, type Scenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';
import type { RunRequest } from './run.ts';
import type { RunPool } from './run-pool.ts';

interface HarmTrial {
  readonly harm: string;
  readonly scenario: Scenario;
  readonly bound: Bound;
  isDone(figure: number): boolean;
}

const SEED = 7919;
const HERD = 300;

function storm(id: string, seconds: number, service: string, clients: string, fault: string): Scenario {
  return parseScenario(`
id: ${id}
duration: ${seconds}s
services: { api: { ${service} } }
clients: { web: { to: api, ${clients} } }
faults: [${fault}]
measure: { from: 3s }
`);
}

const busy = 'workers: 10, time: { exponential: 100ms }';

const trials: readonly HarmTrial[] = [
  {
    harm: 'multiplies the load of an outage',
    scenario: storm(
      'outage',
      30,
      busy,
      'arrivals: { poisson: 60/s }',
      '{ kind: refuse, service: api, from: 10s, until: 25s }',
    ),
    bound: parseAssertion('multiplication from 10s until 25s > 0').bound,
    isDone: (figure) => figure > 1.5,
  },
  {
    harm: 'adds load to a service that is full',
    scenario: storm('full', 30, `${busy}, queue: { max: 20 }`, 'arrivals: { poisson: 170/s }', ''),
    bound: parseAssertion('multiplication from 5s > 0').bound,
    isDone: (figure) => figure > 1.3,
  },
  {
    harm: 'keeps a service down after a stall',
    scenario: storm(
      'stall',
      60,
      busy,
      'arrivals: { poisson: 75/s }, attemptTimeout: 1s',
      '{ kind: stall, service: api, from: 10s, until: 14s }',
    ),
    bound: parseAssertion('recovery > 0').bound,
    isDone: (figure) => !(figure <= 20),
  },
  {
    harm: 'makes it worse when one call in twenty fails',
    scenario: storm(
      'failing',
      30,
      'time: { exponential: 50ms }',
      'arrivals: { poisson: 60/s }, failing: 0.05',
      '',
    ),
    bound: parseAssertion('success > 0').bound,
    isDone: (figure) => figure < 0.93,
  },
  {
    harm: 'comes back all at once',
    scenario: storm(
      'herd',
      30,
      'workers: 50, time: { exponential: 20ms }',
      `count: ${HERD}, state: each, arrivals: { burst: 3s }`,
      '{ kind: refuse, service: api, from: 0s, until: 3500ms }',
    ),
    bound: parseAssertion('peak from 3.5s in 100ms > 0').bound,
    isDone: (figure) => figure > 0.6 * HERD,
  },
  {
    harm: 'lets customers wait without end',
    scenario: storm(
      'hang',
      60,
      'time: { exponential: 50ms }',
      'arrivals: { poisson: 20/s }',
      '{ kind: hang, service: api, from: 10s, until: 12s }',
    ),
    bound: parseAssertion('backlog until 50s > 0').bound,
    isDone: (figure) => figure > 10,
  },
];

/**
 * Returns one list of harms for each policy: what it does badly in test scenarios. The list is empty for a
 * harmless policy.
 */
export async function harmsOf(policies: readonly PolicySpec[], pool: RunPool): Promise<string[][]> {
  const requests = policies.flatMap((spec) =>
    trials.map(({ scenario, bound }): RunRequest => {
      const { name: _, ...tried } = spec;
      return { scenario: { ...scenario, policies: { tried } }, policy: 'tried', seed: SEED, bounds: [bound] };
    }),
  );
  const answers = await pool.run(requests);
  return policies.map((_, index) =>
    trials
      .filter(({ isDone }, at) => isDone(answers[index * trials.length + at]!.figures[0]!))
      .map(({ harm }) => harm),
  );
}
