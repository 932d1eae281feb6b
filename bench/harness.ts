import { type Better, type CaseResult, compare, type Samples, type Subject } from './compare.ts';

/**
 * Does the measured thing `times` times. Each contestant brings its own loop, written out: a loop shared by all would
 * meet every contestant at one call site, and the compiler would optimise it for none.
 */
export type Loop = (times: number) => Promise<void>;

/** Something to measure, as data. */
export interface Case extends Subject {
  readonly unit: 'ns' | 'bytes';
  readonly better: Better;
  readonly floor: Loop;
  readonly ours: Loop;
  readonly peers: Readonly<Record<string, Loop>>;
}

export interface TimedResult extends CaseResult {
  /** The same by the clock on the wall: what the caller waits, idle time included. */
  readonly wall: Pick<CaseResult, 'ours' | 'floor' | 'peers' | 'toFloor' | 'toBestPeer'>;
}

interface Contestant {
  readonly name: string;
  readonly loop: Loop;
  times: number;
  readonly cpuNs: number[];
  readonly wallNs: number[];
}

interface Taken {
  readonly cpuNs: number;
  readonly wallNs: number;
}

/** Enough for functions; what goes through sockets needs longer rounds, or chance decides. */
const ROUND_MS = 25;
const WARM_UP_ROUNDS = 4;
/** Run like the others and not counted: what the warm-up of later cases made the compiler forget comes back. */
const SETTLING_ROUNDS = 2;
const TIMES_MAX = 1_000_000;
const FLOOR = 'floor';
const OURS = 'ours';

/**
 * Times cases in this process. All of them are warmed up before the first is measured, so the compiler has seen every
 * kind of policy by then, as it has in a program that uses several.
 */
export async function timeCases(
  cases: readonly Case[],
  rounds: number,
  roundMs: number = ROUND_MS,
): Promise<TimedResult[]> {
  const fields = cases.map((each) => ({ subject: each, contestants: contestantsOf(each) }));
  for (const { contestants } of fields) await warmUp(contestants, roundMs);

  const results: TimedResult[] = [];
  for (const { subject, contestants } of fields) {
    for (const contestant of contestants) await calibrate(contestant, roundMs);
    for (let round = -SETTLING_ROUNDS; round < rounds; round++) {
      for (const contestant of orderOf(contestants, Math.abs(round))) {
        const { cpuNs, wallNs } = await take(contestant.loop, contestant.times);
        if (round < 0) continue;
        contestant.cpuNs.push(cpuNs);
        contestant.wallNs.push(wallNs);
      }
    }
    const { ours, floor, peers, toFloor, toBestPeer } = compare(
      { ...subject, bars: [] },
      samplesOf(contestants, 'wallNs'),
    );
    results.push({
      ...compare(subject, samplesOf(contestants, 'cpuNs')),
      wall: { ours, floor, peers, toFloor, toBestPeer },
    });
  }
  return results;
}

/** The order rotates: each contestant starts a round now and then, and none always follows the same one. */
export function orderOf<T>(contestants: readonly T[], round: number): T[] {
  const first = Math.floor(round / 2) % contestants.length;
  const rotated = [...contestants.slice(first), ...contestants.slice(0, first)];
  return round % 2 === 0 ? rotated : rotated.reverse();
}

/** Gives timers and closing handles a turn, so that they do not count for the next contestant. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function contestantsOf({ floor, ours, peers }: Case): Contestant[] {
  return Object.entries({ [FLOOR]: floor, [OURS]: ours, ...peers }).map(([name, loop]) => ({
    name,
    loop,
    times: 1,
    cpuNs: [],
    wallNs: [],
  }));
}

async function warmUp(contestants: readonly Contestant[], roundMs: number): Promise<void> {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    for (const contestant of orderOf(contestants, round)) await calibrate(contestant, roundMs);
  }
}

/** Finds how many times fill a round: a contestant that waits for timers gets few, so that it cannot make the run long. */
async function calibrate(contestant: Contestant, wantedMs: number): Promise<void> {
  for (let times = 1; ; ) {
    const { wallNs } = await take(contestant.loop, times);
    const tookMs = (wallNs * times) / 1e6;
    const fill = Math.ceil((times * wantedMs) / Math.max(tookMs, wantedMs / 100));
    contestant.times = Math.min(fill, TIMES_MAX);
    if (tookMs >= wantedMs / 2 || times >= TIMES_MAX) return;
    times = contestant.times;
  }
}

/** Processor time of the whole process, so that garbage collection and compilation count for their contestant. */
async function take(loop: Loop, times: number): Promise<Taken> {
  await breathe();
  const cpuBefore = process.cpuUsage();
  const wallBefore = process.hrtime.bigint();
  await loop(times);
  const wallNs = Number(process.hrtime.bigint() - wallBefore);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { cpuNs: ((user + system) * 1000) / times, wallNs: wallNs / times };
}

function samplesOf(contestants: readonly Contestant[], figure: 'cpuNs' | 'wallNs'): Samples {
  const all = Object.fromEntries(contestants.map((each) => [each.name, each[figure]]));
  const { [FLOOR]: floor = [], [OURS]: ours = [], ...peers } = all;
  return { floor, ours, peers };
}
