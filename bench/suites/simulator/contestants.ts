import { parseScenario } from '@holdfast/config';
import { type Results, type SimulationOptions, simulate, simulateAsync } from '@holdfast/simulator';
import { any, definePolicy, retry } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { EventHeap } from './event-heap.ts';
import { withFakeTimers, withSimJs, withSimScript } from './peers.ts';

/** Ten thousand clients that wait, call and retry plainly; one call in five fails. */
const CLIENTS = 10_000;
const scenario = parseScenario(`
id: plain-retry
duration: 60s
services: { api: { time: { exponential: 100ms } } }
clients: { app: { to: api, count: ${CLIENTS}, arrivals: { think: { exponential: 1s } }, failing: 0.2 } }
policies: { plain: { retryOnly: any, attempts: 4, patience: unlimited } }
`);

const plain = definePolicy([retry, any]);
const options: SimulationOptions = {
  policy: 'plain',
  make: (spec, environment) => plain(spec as Parameters<typeof plain>[0], environment),
};

/** Virtual, so that a round takes about half a second. */
const SYNC_MS = 30_000;
const ASYNC_MS = 8_000;
/** Peers get less, and those whose timers cost more the more there are, least: a round must end. */
const PEER_MS = 2_000;
const SLOW_PEER_MS = 100;

/** An attempt is two events: the floor adds and takes two, with as many pending as there are clients. */
const EVENTS_AN_ATTEMPT = 2;
const FLOOR_ATTEMPTS = 500_000;

const peer = { clients: CLIENTS, ms: PEER_MS };
const slowPeer = { clients: CLIENTS, ms: SLOW_PEER_MS };

/** Simulates once, and gives the attempts that were made. */
export type Contestant = (round: number) => Promise<number>;

export const contestants: Readonly<Record<string, Contestant>> = {
  floor: async (round) => bareHeap(round),
  sync: async () => attemptsOf(simulate(scenario, { ...options, durationMs: SYNC_MS })),
  async: async () => attemptsOf(await simulateAsync(scenario, { ...options, durationMs: ASYNC_MS })),
  simjs: () => withSimJs(peer),
  simscript: () => withSimScript(slowPeer),
  'fake timers': () => withFakeTimers(slowPeer),
};

function attemptsOf(results: Results): number {
  return results.figure('attempts');
}

function bareHeap(seed: number): number {
  const random = seededRandom('heap', seed);
  const heap = new EventHeap();
  for (let client = 0; client < CLIENTS; client++) heap.add(Math.round(random() * 1e6));
  for (let event = 0; event < EVENTS_AN_ATTEMPT * FLOOR_ATTEMPTS; event++) {
    const now = heap.firstAt;
    heap.takeFirst();
    heap.add(now + Math.round(-1e6 * Math.log(1 - random())));
  }
  return FLOOR_ATTEMPTS;
}
