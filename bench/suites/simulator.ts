import { parseScenario } from '@holdfast/config';
import { type Results, type SimulationOptions, simulate, simulateAsync } from '@holdfast/simulator';
import { any, definePolicy, retry } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { compare, type Samples } from '../compare.ts';
import { breathe } from '../harness.ts';
import type { Suite } from '../suite.ts';
import { EventHeap } from './simulator/event-heap.ts';
import { withFakeTimers, withSimJs, withSimScript } from './simulator/peers.ts';

/** Ten thousand clients that wait, call and retry plainly; one call in five fails. */
const CLIENTS = 10_000;
const scenario = parseScenario(`
id: plain-retry
duration: 60s
services: { api: { time: { exponential: 100ms } } }
clients: { app: { to: api, count: ${CLIENTS}, arrivals: { think: { exponential: 1s } }, failing: 0.2 } }
policies: { plain: { retryOn: any, attempts: 4, patience: unlimited } }
`);

const plain = definePolicy([retry, any]);
const options: SimulationOptions = {
  policy: 'plain',
  make: (spec, environment) => plain(spec as Parameters<typeof plain>[0], environment),
};

const ROUNDS = 5;
/** Rounds that are not counted: the compiler takes its time with code that spreads over so many small functions. */
const WARM_UP_ROUNDS = 4;
/** Virtual, so that a round takes about half a second. */
const SYNC_MS = 30_000;
const ASYNC_MS = 8_000;
/** Peers get less, and those whose timers cost more the more there are, least: a round must end. */
const PEER_MS = 2_000;
const SLOW_PEER_MS = 100;

/** An attempt is two events: the floor adds and takes two, with as many pending as there are clients. */
const EVENTS_AN_ATTEMPT = 2;
const FLOOR_ATTEMPTS = 500_000;

type Contestant = () => Promise<{ readonly attempts: number }>;

const peer = { clients: CLIENTS, ms: PEER_MS };
const simJs: Contestant = async () => ({ attempts: await withSimJs(peer) });
const simScript: Contestant = async () => ({ attempts: await withSimScript({ ...peer, ms: SLOW_PEER_MS }) });
const fakeTimers: Contestant = async () => ({
  attempts: await withFakeTimers({ ...peer, ms: SLOW_PEER_MS }),
});

const cases: readonly {
  readonly case: string;
  readonly ours: Contestant;
  readonly peers: Readonly<Record<string, Contestant>>;
  readonly oursMaxNs: number;
}[] = [
  {
    case: 'sync attempts',
    ours: async () => attemptsOf(simulate(scenario, { ...options, durationMs: SYNC_MS })),
    peers: { simjs: simJs },
    oursMaxNs: 1_000,
  },
  {
    case: 'async attempts',
    ours: async () => attemptsOf(await simulateAsync(scenario, { ...options, durationMs: ASYNC_MS })),
    peers: { simscript: simScript, 'fake timers': fakeTimers },
    oursMaxNs: 10_000,
  },
];

export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const results = [];
    for (const { case: name, ours, peers, oursMaxNs } of cases.filter((each) =>
      each.case.includes(caseContains),
    )) {
      const samples = { floor: [] as number[], ours: [] as number[], peers: {} as Record<string, number[]> };
      for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
        const floorNs = await cpuNs(async () => bareHeap(round));
        const oursNs = await cpuNs(ours);
        if (round < 0) continue;
        samples.floor.push(floorNs);
        samples.ours.push(oursNs);
        for (const [peerName, contestant] of Object.entries(peers)) {
          samples.peers[peerName] ??= [];
          samples.peers[peerName].push(await cpuNs(contestant));
        }
      }
      const subject = { case: name, unit: 'ns', better: 'lower', bars: [{ oursMax: oursMaxNs }] } as const;
      results.push(compare(subject, samples satisfies Samples));
    }
    return results;
  },
  notes: [
    'Processor time of one attempt, setting up 10,000 clients included.',
    'The floor is a bare heap that takes the earliest of 10,000 events and adds another, twice for each attempt.',
    'Peers simulate the same clients with nothing but timers: no policies, no service, no figures.',
  ],
};

function attemptsOf(results: Results): { attempts: number } {
  return { attempts: results.figure('attempts') };
}

/** Processor time for each attempt. */
async function cpuNs(work: Contestant): Promise<number> {
  await breathe();
  const before = process.cpuUsage();
  const { attempts } = await work();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / attempts;
}

function bareHeap(seed: number): { attempts: number } {
  const random = seededRandom('heap', seed);
  const heap = new EventHeap();
  for (let client = 0; client < CLIENTS; client++) heap.add(Math.round(random() * 1e6));
  for (let event = 0; event < EVENTS_AN_ATTEMPT * FLOOR_ATTEMPTS; event++) {
    const now = heap.firstAt;
    heap.takeFirst();
    heap.add(now + Math.round(-1e6 * Math.log(1 - random())));
  }
  return { attempts: FLOOR_ATTEMPTS };
}
