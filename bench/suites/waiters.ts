import path from 'node:path';
import { type CaseResult, compare, type Samples, type Subject } from '../compare.ts';
import { orderOf } from '../harness.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';

/** What can cancel the wait: nothing, one signal that all calls share, or a signal for each call. */
export type Cancelling = 'none' | 'shared' | 'own';

/** Timers are counted in a process apart, because counting them costs time and bytes. */
type Setting = Cancelling | 'counted';

export interface WaitersJob {
  readonly contestant: string;
  readonly cancelling: Cancelling;
  readonly countsTimers: boolean;
  readonly count: number;
}

export interface WaitersAnswer {
  readonly bytes: number;
  /** Processor time a waiter, like the next. */
  readonly startNs: number;
  /** From the abort until every call has rejected; NaN if calls cannot be cancelled. */
  readonly cancelNs: number;
  /** The most timers at a time; NaN if they are not counted. */
  readonly timers: number;
}

interface WaitersCase extends Subject {
  readonly setting: Setting;
  readonly figure: keyof WaitersAnswer;
}

const COUNT = 100_000;
const ROUNDS = 3;

const contestants = ['floor', 'ours', 'p-retry', 'cockatiel'];
/** Once it has begun to wait it does not listen to the signal. */
const cannotCancel = ['cockatiel'];
/** It adds a listener a call, and each looks through all that are there: what is left out is in its favour. */
const quadratic = { contestant: 'p-retry', cancelling: 'shared', count: 10_000 };

const cases: readonly WaitersCase[] = [
  { case: 'bytes a waiter', unit: 'bytes', better: 'lower', setting: 'none', figure: 'bytes' },
  { case: 'start a waiter', unit: 'ns', better: 'lower', setting: 'none', figure: 'startNs' },
  {
    case: 'host timers',
    unit: 'timers',
    better: 'lower',
    setting: 'counted',
    figure: 'timers',
    bars: [{ oursMax: 1 }],
  },
  {
    case: 'start a waiter, own signals',
    unit: 'ns',
    better: 'lower',
    setting: 'own',
    figure: 'startNs',
  },
  { case: 'cancel a waiter, own signals', unit: 'ns', better: 'lower', setting: 'own', figure: 'cancelNs' },
  { case: 'start a waiter, one signal', unit: 'ns', better: 'lower', setting: 'shared', figure: 'startNs' },
  { case: 'cancel a waiter, one signal', unit: 'ns', better: 'lower', setting: 'shared', figure: 'cancelNs' },
];

const workerFile = path.join(import.meta.dirname, 'waiters-process.ts');

/** What it costs to wait: a hundred thousand calls in backoff at once, each contestant in a fresh process. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const chosen = cases.filter((each) => each.case.includes(caseContains));
    const results: CaseResult[] = [];
    for (const setting of new Set(chosen.map((each) => each.setting))) {
      const answers = await measure(setting, rounds);
      for (const subject of chosen.filter((each) => each.setting === setting)) {
        results.push(compare(subject, samplesOf(answers, subject.figure)));
      }
    }
    return results;
  },
  notes: [
    `${COUNT.toLocaleString('en')} calls that have failed once and wait 5 to 10 minutes, at random; each contestant in a fresh process.`,
    'ns: processor time a waiter, with all the others there. timers: alive at once, at most.',
    'floor: a promise with a timer; its own signals have a listener each, one signal has one for all.',
    `p-retry with one signal: ${quadratic.count.toLocaleString('en')} calls, because starting more takes time by the square. cockatiel cannot be cancelled.`,
  ],
};

async function measure(setting: Setting, rounds: number): Promise<Record<string, WaitersAnswer[]>> {
  const countsTimers = setting === 'counted';
  const cancelling = countsTimers ? 'none' : setting;
  const able = contestants.filter((each) => cancelling === 'none' || !cannotCancel.includes(each));
  const answers: Record<string, WaitersAnswer[]> = Object.fromEntries(able.map((each) => [each, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contestant of orderOf(able, round)) {
      const isQuadratic = contestant === quadratic.contestant && cancelling === quadratic.cancelling;
      const job: WaitersJob = {
        contestant,
        cancelling,
        countsTimers,
        count: isQuadratic ? quadratic.count : COUNT,
      };
      answers[contestant]?.push(await inProcess<WaitersJob, WaitersAnswer>(workerFile, ['--expose-gc'], job));
    }
  }
  return answers;
}

function samplesOf(answers: Record<string, WaitersAnswer[]>, figure: keyof WaitersAnswer): Samples {
  const {
    floor = [],
    ours = [],
    ...peers
  } = Object.fromEntries(
    Object.entries(answers).map(([name, all]) => [name, all.map((each) => each[figure])]),
  );
  return { floor, ours, peers };
}
