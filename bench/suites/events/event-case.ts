import { type CaseResult, compare, type Samples, type Subject } from '../../compare.ts';
import { breathe, orderOf } from '../../harness.ts';

/** Something that handles events, set up once and asked for a figure each round. */
export interface Contestant {
  /** One round: a rate, or a latency. */
  round(): Promise<number>;
  close(): Promise<void>;
}

export interface EventCase extends Subject {
  /** `floor`, `ours` and the peers by name. */
  contestants(): Promise<Readonly<Record<string, Contestant>>>;
}

/** Everyone takes a round in turn; the first warms up, and is not counted. */
export async function measure({ contestants, ...subject }: EventCase, rounds: number): Promise<CaseResult> {
  const field = Object.entries(await contestants());
  const figures: Record<string, number[]> = Object.fromEntries(field.map(([name]) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, contestant] of orderOf(field, round)) {
      await breathe();
      const figure = await contestant.round();
      if (round > 0) figures[name]!.push(figure);
    }
  }
  for (const [, contestant] of field) await contestant.close();
  const { floor = [], ours = [], ...peers } = figures;
  return compare(subject, { floor, ours, peers } satisfies Samples);
}

/** Events a second, for `work` that handles so many. */
export async function rateOf(events: number, work: () => Promise<unknown>): Promise<number> {
  const before = process.hrtime.bigint();
  await work();
  return events / (Number(process.hrtime.bigint() - before) / 1e9);
}
