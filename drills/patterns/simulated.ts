import { parseScenario } from '@holdfast/config';
import { type Results, simulate } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import type { Curve } from '../published/figure.ts';

const SEED = 7919;

/** What hand-written code has: no limits, no budget and no breaker. Each anti-pattern adds its own retries. */
export const byHand: PolicySpec = {
  retryOnly: 'any',
  attempts: 1,
  backoff: false,
  patience: 'unlimited',
  attemptTimeout: 'none',
  budget: false,
  breaker: false,
  respectServer: false,
};

/** Runs a scenario with the document of a policy. */
export function runOf(text: string, { name: _, ...spec }: PolicySpec): Results {
  return simulate(parseScenario(text), {
    policy: 'shown',
    policies: new Map([['shown', spec]]),
    seed: SEED,
  });
}

/** A figure for each second as a curve: each point is the mean of some seconds. */
export function overTime(name: string, bySecond: readonly number[], secondsEach = 1): Curve {
  const points: [number, number][] = [];
  for (let second = 0; second < bySecond.length; second += secondsEach) {
    const some = bySecond.slice(second, second + secondsEach);
    points.push([second + some.length / 2, some.reduce((sum, each) => sum + each, 0) / some.length]);
  }
  return { name, points };
}

/** The number of calls that have begun and not ended, at the end of each second. */
export function waitingIn(results: Results): number[] {
  const { offered, goodput, failed } = results.report().all.series;
  let waiting = 0;
  return offered.map((begun, second) => {
    waiting += begun - goodput[second]! - failed[second]!;
    return waiting;
  });
}
