import type { DrillOptions } from '../scripts/drill.ts';
import { type ClientsOrder, type Phase, type Slice, sendFrom } from './overload/clients.ts';
import { type Figures, figuresOf, settledAfter } from './overload/figures.ts';
import { startService } from './overload/service.ts';

export interface OverloadSize {
  readonly calmSeconds: number;
  readonly overloadSeconds: number;
  readonly afterSeconds: number;
  readonly changedSeconds: number;
}

const full: OverloadSize = { calmSeconds: 4, overloadSeconds: 15, afterSeconds: 5, changedSeconds: 12 };

/** What the service can do in a second, and what it can do for a while. */
export const CAPACITY = 500;
const LESS = 100;
export const TIMEOUT_MS = 500;
/** A limit that starts anywhere needs a moment to find out. */
const FINDING_SECONDS = 2;

const GOODPUT_MIN = 0.95;
const P50_MAX_MS = 100;
const CRITICAL_MIN = 0.99;
const BACK_WITHIN_SECONDS = 2;
const FOLLOWS_WITHIN_SECONDS = 5;

/** More is asked of a service than it can do. With protection it does what it can; without, nothing in time. */
export async function drill({ times = 1 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const broken: string[] = [];
  for (let time = 0; time < times; time++) {
    for (const load of [3, 10]) {
      for (const retrying of [false, true]) {
        const name = `${load}x${retrying ? ' retrying' : ''}`;
        for (const isProtected of [true, false]) {
          const outcome = await overload(full, load, retrying, isProtected);
          Object.assign(counts, named(`${name} ${isProtected ? 'protected' : 'bare'}`, outcome));
          if (isProtected) broken.push(...brokenBy(name, outcome));
        }
      }
    }
    const change = await changed(full);
    Object.assign(counts, named('changed capacity', change));
    broken.push(...brokenByChange(change));
  }
  if (broken.length > 0)
    throw new Error(`The overload broke its promises: ${broken.join('; ')}. ${JSON.stringify(counts)}`);
  return counts;
}

export interface OverloadOutcome extends Figures {
  /** Until nearly everything is served again, quickly. */
  readonly backAfterSeconds: number;
}

export async function overload(
  size: OverloadSize,
  load: number,
  retrying: boolean,
  isProtected: boolean,
): Promise<OverloadOutcome> {
  const { calmSeconds, overloadSeconds, afterSeconds } = size;
  const slices = await run(isProtected, retrying, [
    { seconds: calmSeconds, perSecond: CAPACITY / 2 },
    { seconds: overloadSeconds, perSecond: CAPACITY * load },
    { seconds: afterSeconds, perSecond: CAPACITY / 2 },
  ]);
  const overAt = calmSeconds + overloadSeconds;
  return {
    ...figuresOf(slices, calmSeconds + FINDING_SECONDS, overAt),
    backAfterSeconds: settledAfter(
      slices,
      overAt,
      overAt + afterSeconds,
      ({ served, p50Ms }) => served >= 0.97 && p50Ms <= P50_MAX_MS,
    ),
  };
}

export interface ChangeOutcome {
  /** Until the goodput is that of the new capacity, quickly served. */
  readonly followsLessAfterSeconds: number;
  readonly followsMoreAfterSeconds: number;
  readonly goodputOfLess: number;
  readonly goodputOfMore: number;
}

/** Three times what it can do, and what it can do changes. */
export async function changed(size: OverloadSize): Promise<ChangeOutcome> {
  const { changedSeconds: seconds } = size;
  const slices = await run(
    true,
    false,
    [{ seconds: 3 * seconds, perSecond: 3 * CAPACITY }],
    [
      { afterSeconds: seconds, perSecond: LESS },
      { afterSeconds: 2 * seconds, perSecond: CAPACITY },
    ],
  );
  const follows = (from: number, capacity: number) =>
    settledAfter(
      slices,
      from,
      from + seconds,
      ({ goodputPerSecond, p50Ms }) => goodputPerSecond >= 0.8 * capacity && p50Ms <= 1.5 * P50_MAX_MS,
      // Every ten seconds the limit is lowered for a moment, to see how long a call takes without a queue: no half second
      // tells whether a change is followed.
      2,
    );
  return {
    followsLessAfterSeconds: follows(seconds, LESS),
    followsMoreAfterSeconds: follows(2 * seconds, CAPACITY),
    goodputOfLess: figuresOf(slices, seconds + FOLLOWS_WITHIN_SECONDS, 2 * seconds).goodputPerSecond,
    goodputOfMore: figuresOf(slices, 2 * seconds + FOLLOWS_WITHIN_SECONDS, 3 * seconds).goodputPerSecond,
  };
}

export interface Change {
  readonly afterSeconds: number;
  readonly perSecond: number;
}

/** Lets clients meet a service, which may change meanwhile. */
export async function run(
  isProtected: boolean,
  retrying: boolean,
  phases: readonly Phase[],
  changes: readonly Change[] = [],
): Promise<Slice[]> {
  await using service = await startService(CAPACITY, isProtected);
  const order: ClientsOrder = { port: service.port, phases, timeoutMs: TIMEOUT_MS, retrying };
  const timers = changes.map(({ afterSeconds, perSecond }) =>
    setTimeout(() => service.change(perSecond), afterSeconds * 1000),
  );
  try {
    return await sendFrom(order);
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}

function brokenBy(name: string, outcome: OverloadOutcome): string[] {
  const { goodputPerSecond, p50Ms, criticalServed, backAfterSeconds } = outcome;
  return [
    goodputPerSecond < GOODPUT_MIN * CAPACITY && `${name}: goodput was ${goodputPerSecond.toFixed(0)}/s`,
    !(p50Ms <= P50_MAX_MS) && `${name}: the median of the served was ${p50Ms.toFixed(0)} ms`,
    criticalServed < CRITICAL_MIN &&
      `${name}: of the critical ${(100 * criticalServed).toFixed(2)} % were served`,
    backAfterSeconds > BACK_WITHIN_SECONDS && `${name}: it was back to normal after ${backAfterSeconds} s`,
  ].filter((each) => each !== false);
}

function brokenByChange(outcome: ChangeOutcome): string[] {
  const { followsLessAfterSeconds, followsMoreAfterSeconds, goodputOfLess, goodputOfMore } = outcome;
  return [
    goodputOfLess < GOODPUT_MIN * LESS && `of less capacity ${goodputOfLess.toFixed(0)}/s were used`,
    goodputOfMore < GOODPUT_MIN * CAPACITY && `of more capacity ${goodputOfMore.toFixed(0)}/s were used`,
    followsLessAfterSeconds > FOLLOWS_WITHIN_SECONDS &&
      `less capacity was followed after ${followsLessAfterSeconds} s`,
    followsMoreAfterSeconds > FOLLOWS_WITHIN_SECONDS &&
      `more capacity was followed after ${followsMoreAfterSeconds} s`,
  ].filter((each) => each !== false);
}

function named(name: string, figures: object): Record<string, number> {
  return Object.fromEntries(
    Object.entries(figures).map(([what, value]) => [`${name} ${what}`, Number((value as number).toFixed(3))]),
  );
}
