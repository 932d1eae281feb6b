import { type CaseResult, compare, type Samples, type Subject } from '../../compare.ts';
import { breathe, orderOf, type TimedResult } from '../../harness.ts';

/** Events a second: by the clock on the wall, and of this process's processor time. */
export interface Rate {
  readonly wall: number;
  readonly processor: number;
}

/** Something that handles events, set up once and asked for a figure each round. */
export interface Contestant {
  /** One round: a rate, or a latency in ms. */
  round(): Promise<Rate | number>;
  close(): Promise<void>;
}

export interface EventCase extends Subject {
  /**
   * What is compared, `wall` unless given. `processor` where all of the work is done in this process: then a busy neighbour does
   * not count, and the clock on the wall is shown beside it.
   */
  readonly by?: keyof Rate;
  /** `floor`, `ours` and the peers by name. */
  contestants(): Promise<Readonly<Record<string, Contestant>>>;
}

type Figures = Readonly<Record<string, readonly (Rate | number)[]>>;

/** Everyone takes a round in turn; the first warms up, and is not counted. */
export async function measure(
  { contestants, by = 'wall', ...subject }: EventCase,
  rounds: number,
): Promise<CaseResult | TimedResult> {
  const field = Object.entries(await contestants());
  const figures: Record<string, (Rate | number)[]> = Object.fromEntries(field.map(([name]) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, contestant] of orderOf(field, round)) {
      await breathe();
      const figure = await contestant.round();
      if (round > 0) figures[name]!.push(figure);
    }
  }
  for (const [, contestant] of field) await contestant.close();
  const result = compare(subject, samplesOf(figures, by));
  if (by === 'wall') return result;
  const { ours, floor, peers, toFloor, toBestPeer } = compare(
    { ...subject, bars: [] },
    samplesOf(figures, 'wall'),
  );
  return { ...result, wall: { ours, floor, peers, toFloor, toBestPeer } };
}

function samplesOf(figures: Figures, by: keyof Rate): Samples {
  const all = Object.entries(figures).map(([name, each]) => [
    name,
    each.map((figure) => (typeof figure === 'number' ? figure : figure[by])),
  ]);
  const { floor = [], ours = [], ...peers } = Object.fromEntries(all) as Record<string, number[]>;
  return { floor, ours, peers };
}

/** For `work` that handles so many. */
export async function rateOf(events: number, work: () => Promise<unknown>): Promise<Rate> {
  const cpuBefore = process.cpuUsage();
  const before = process.hrtime.bigint();
  await work();
  const wallMs = Number(process.hrtime.bigint() - before) / 1e6;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { wall: (events / wallMs) * 1000, processor: (events / (user + system)) * 1e6 };
}
