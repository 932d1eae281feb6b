import type { Samples } from '../../compare.ts';
import { orderOf } from '../../harness.ts';
import type { Contestant } from './contestant.ts';
import type { Burst, Load } from './load.ts';

/** Short, so that a slow moment of the machine meets everybody; a round is the sum of several. */
const SLICE_MS = 3;
const SLICES = 30;
const SLICE_REQUESTS_MIN = 64;

/** A framework is more code than a function: the compiler takes its time. */
const WARM_UP_REQUESTS = 15_000;
const WARM_UP_MAX_MS = 3_000;
const SETTLING_ROUNDS = 1;

export interface RoundSamples {
  readonly cpu: Samples;
  readonly wall: Samples;
}

/** What a request took one of the two servers of a process. */
interface Cost {
  cpuNs: number;
  wallNs: number;
}

type Side = 'floor' | 'contestant';
const sides: readonly Side[] = ['floor', 'contestant'];

/** Rounds in which all servers get the same number of requests: one process after the other, whose two take short turns. */
export async function paired(
  contestants: readonly Contestant[],
  kind: Burst['kind'],
  load: Load,
  rounds: number,
): Promise<RoundSamples> {
  for (const { ports } of contestants) {
    await warmUp(ports.floor, kind, load);
    await warmUp(ports.contestant, kind, load);
  }
  const times = await sliceOf(contestants[0]!.ports.floor, kind, load);
  const measured: Map<Contestant, Record<Side, Cost>>[] = [];
  for (let round = -SETTLING_ROUNDS; round < rounds; round++) {
    const costs = new Map(contestants.map((each) => [each, { floor: nothing(), contestant: nothing() }]));
    for (const contestant of orderOf(contestants, Math.abs(round))) {
      const cost = costs.get(contestant)!;
      for (let slice = 0; slice < SLICES; slice++) {
        for (const side of orderOf(sides, Math.abs(round) + slice)) {
          const before = await contestant.cpuNs();
          const since = process.hrtime.bigint();
          await load.send({ port: contestant.ports[side], kind, times });
          cost[side].wallNs += Number(process.hrtime.bigint() - since) / (SLICES * times);
          cost[side].cpuNs += ((await contestant.cpuNs()) - before) / (SLICES * times);
        }
      }
    }
    if (round >= 0) measured.push(costs);
  }
  return { cpu: samplesOf(contestants, measured, 'cpuNs'), wall: samplesOf(contestants, measured, 'wallNs') };
}

/**
 * The floor is that of ours. Of peers, who had another one, it is told how they compare with theirs, in terms of ours: so
 * whoever is compared with whom, what their processes had in luck is taken out.
 */
function samplesOf(
  contestants: readonly Contestant[],
  measured: readonly Map<Contestant, Record<Side, Cost>>[],
  figure: keyof Cost,
): Samples {
  const [ours, ...peers] = contestants;
  const floor = measured.map((costs) => costs.get(ours!)!.floor[figure]);
  const told = (contestant: Contestant) =>
    measured.map((costs, round) => {
      const its = costs.get(contestant)!;
      return (its.contestant[figure] / its.floor[figure]) * floor[round]!;
    });
  return {
    floor,
    ours: told(ours!),
    peers: Object.fromEntries(peers.map((peer) => [peer.name, told(peer)])),
  };
}

function nothing(): Cost {
  return { cpuNs: 0, wallNs: 0 };
}

/** On a machine that is busy with other things it ends early: the run must end, too. */
async function warmUp(port: number, kind: Burst['kind'], load: Load): Promise<void> {
  const since = process.hrtime.bigint();
  for (let sent = 0; sent < WARM_UP_REQUESTS && msSince(since) < WARM_UP_MAX_MS; sent += 1_000) {
    await load.send({ port, kind, times: 1_000 });
  }
}

/** How many requests the floor answers in a slice. */
async function sliceOf(port: number, kind: Burst['kind'], load: Load): Promise<number> {
  const times = 2_000;
  const since = process.hrtime.bigint();
  await load.send({ port, kind, times });
  return Math.max(SLICE_REQUESTS_MIN, Math.round((times * SLICE_MS) / msSince(since)));
}

function msSince(since: bigint): number {
  return Number(process.hrtime.bigint() - since) / 1e6;
}
