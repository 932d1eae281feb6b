import type { Samples } from '../../compare.ts';
import { orderOf } from '../../harness.ts';
import type { Contestant } from './contestant.ts';
import type { Burst, Load } from './load.ts';

/** Short, so that a slow moment of the machine meets everybody, and long enough to be warm again; a round is the sum of several. */
const SLICE_MS = 30;
const SLICES = 4;
const SLICE_REQUESTS_MIN = 96;

/** A framework is more code than a function: the compiler takes its time. */
const WARM_UP_REQUESTS = 15_000;
const WARM_UP_MAX_MS = 3_000;
const SETTLING_ROUNDS = 1;

export interface RoundSamples {
  readonly cpu: Samples;
  readonly wall: Samples;
}

/** Rounds in which all contestants get the same number of requests, in turns and in changing order. */
export async function paired(
  contestants: readonly Contestant[],
  kind: Burst['kind'],
  load: Load,
  rounds: number,
): Promise<RoundSamples> {
  for (const contestant of contestants) await warmUp(contestant, kind, load);
  const times = await sliceOf(contestants[0]!, kind, load);
  const cpu = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  const wall = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  for (let round = -SETTLING_ROUNDS; round < rounds; round++) {
    const cpuNs = new Map<string, number>();
    const wallNs = new Map<string, number>();
    for (let slice = 0; slice < SLICES; slice++) {
      for (const contestant of orderOf(contestants, Math.abs(round) + slice)) {
        const { name, port } = contestant;
        const before = await contestant.cpuNs();
        const since = process.hrtime.bigint();
        await load.send({ port, kind, times });
        add(wallNs, name, Number(process.hrtime.bigint() - since));
        add(cpuNs, name, (await contestant.cpuNs()) - before);
      }
    }
    if (round < 0) continue;
    for (const { name } of contestants) {
      cpu.get(name)!.push(cpuNs.get(name)! / (SLICES * times));
      wall.get(name)!.push(wallNs.get(name)! / (SLICES * times));
    }
  }
  return { cpu: samplesOf(cpu), wall: samplesOf(wall) };
}

/** On a machine that is busy with other things it ends early: the run must end, too. */
async function warmUp({ port }: Contestant, kind: Burst['kind'], load: Load): Promise<void> {
  const since = process.hrtime.bigint();
  for (let sent = 0; sent < WARM_UP_REQUESTS && msSince(since) < WARM_UP_MAX_MS; sent += 1_000) {
    await load.send({ port, kind, times: 1_000 });
  }
}

/** How many requests the floor answers in a slice. */
async function sliceOf({ port }: Contestant, kind: Burst['kind'], load: Load): Promise<number> {
  const times = 2_000;
  const since = process.hrtime.bigint();
  await load.send({ port, kind, times });
  const tookMs = msSince(since);
  return Math.max(SLICE_REQUESTS_MIN, Math.round((times * SLICE_MS) / tookMs));
}

function msSince(since: bigint): number {
  return Number(process.hrtime.bigint() - since) / 1e6;
}

function add(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}

function samplesOf(all: ReadonlyMap<string, readonly number[]>): Samples {
  const { floor = [], ours = [], ...peers } = Object.fromEntries(all);
  return { floor, ours, peers };
}
