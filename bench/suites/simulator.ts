import { parseScenario } from '@holdfast/config';
import { type Results, type SimulationOptions, simulate, simulateAsync } from '@holdfast/simulator';
import { any, definePolicy, retry } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { compare, type Samples } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { EventHeap } from './simulator/event-heap.ts';

/** Ten thousand clients that wait, call and retry plainly; one call in five fails. */
const scenario = parseScenario(`
id: plain-retry
duration: 60s
services: { api: { time: { exponential: 100ms } } }
clients: { app: { to: api, count: 10000, arrivals: { think: { exponential: 1s } }, failing: 0.2 } }
policies: { plain: { retryOn: any, attempts: 4, patience: unlimited } }
`);

const plain = definePolicy([retry, any]);
const options: SimulationOptions = {
  policy: 'plain',
  make: (spec, environment) => plain(spec as Parameters<typeof plain>[0], environment),
};

const ROUNDS = 5;
/** Virtual, so that a round takes about a second. */
const SYNC_MS = 30_000;
const ASYNC_MS = 8_000;

/** An attempt is two events: the floor adds and takes two, with as many pending as there are clients. */
const EVENTS_AN_ATTEMPT = 2;
const FLOOR_ATTEMPTS = 500_000;

const cases = [
  {
    case: 'sync attempts',
    ours: async () => simulate(scenario, { ...options, durationMs: SYNC_MS }),
    bars: [{ oursMax: 1_000 }],
  },
  {
    case: 'async attempts',
    ours: () => simulateAsync(scenario, { ...options, durationMs: ASYNC_MS }),
    bars: [{ oursMax: 10_000 }],
  },
];

export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const results = [];
    for (const { case: name, ours, bars } of cases.filter((each) => each.case.includes(caseContains))) {
      const samples = { floor: [] as number[], ours: [] as number[], peers: {} } satisfies Samples;
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        const floorNs = await cpuNs(
          async () => bareHeap(round),
          () => FLOOR_ATTEMPTS,
        );
        const oursNs = await cpuNs(ours, (run: Results) => run.figure('attempts'));
        if (round === 0) continue;
        samples.floor.push(floorNs);
        samples.ours.push(oursNs);
      }
      results.push(compare({ case: name, unit: 'ns', better: 'lower', bars }, samples));
    }
    return results;
  },
  notes: [
    'Processor time of one attempt, setting up 10,000 clients included.',
    'The floor is a bare heap that takes the earliest of 10,000 events and adds another, twice for each attempt.',
  ],
};

/** Processor time for each of what `count` finds in what `work` gives. */
async function cpuNs<T>(work: () => Promise<T>, count: (given: T) => number): Promise<number> {
  const before = process.cpuUsage();
  const given = await work();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / count(given);
}

function bareHeap(seed: number): void {
  const random = seededRandom('heap', seed);
  const heap = new EventHeap();
  for (let client = 0; client < 10_000; client++) heap.add(Math.round(random() * 1e6));
  for (let event = 0; event < EVENTS_AN_ATTEMPT * FLOOR_ATTEMPTS; event++) {
    const now = heap.firstAt;
    heap.takeFirst();
    heap.add(now + Math.round(-1e6 * Math.log(1 - random())));
  }
}
