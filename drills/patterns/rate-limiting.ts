import type { Results } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { geocoder } from '../../examples/snippets/src/patterns/rate-limiting-good.ts';
import { type Curve, figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, overTime, runOf } from './simulated.ts';

const scenario = `
id: rate-limiting
duration: 40s
services: { geo: { workers: unlimited, time: 10ms, rateLimit: { calls: 100, per: 1s } } }
clients: { job: { to: geo, count: 300, calls: 10, arrivals: { think: 0ms }, repeat: { exponential: 1s } } }
`;

/** The anti-pattern as a policy: again after 50 ms, whatever the server says. */
export const everyFiftyMs: PolicySpec = {
  ...byHand,
  attempts: 'unlimited',
  patience: '10m',
  backoff: { strategy: 'constant', base: '50ms', jitter: 'none' },
};

const TEXT = `
*One process has 300 jobs with 10 calls each. The API allows 100 calls a second. With a retry every 50 ms, the process sends {badCalls} calls for each successful
call, and up to {badPeak} calls a second. The last job ends after {badFinish} s. With the limiter, the process sends {goodCalls} calls for each successful call, and
up to {goodPeak} calls a second. The last job ends after {goodFinish} s. The default policy has no limiter, but obeys \`Retry-After\`. With the default policy, the
process sends {plainCalls} calls for each successful call, and the last job ends after {plainFinish} s.*`;

export function rateLimiting(): PatternRun {
  const bad = runOf(scenario, everyFiftyMs);
  const plain = runOf(scenario, {});
  const good = runOf(scenario, geocoder.spec);
  const named = [
    ['every 50 ms', bad],
    ['default policy', plain],
    ['Holdfast, with a limiter', good],
  ] as const;
  const x = {
    says: '3,000 calls, of which 100 a second are allowed',
    ticks: [0, 10, 20, 30, 40],
    unit: ' s',
  };
  return {
    plots: {
      'rate-limiting': figure('3,000 calls under a quota of 100 a second', [
        {
          title: 'What the API gets',
          x,
          y: { says: 'calls a second', ticks: [10, 100, 1000, 10_000], isLog: true },
          curves: named.map(([name, run]) => overTime(name, run.report().all.series.attempts)),
        },
        {
          title: 'What is done',
          x,
          y: { says: 'of 3,000 calls', ticks: [0, 1000, 2000, 3000] },
          curves: named.map(([name, run]) => done(name, run)),
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badCalls: shown(bad.figure('callsPerSuccess'), 1),
      badPeak: shown(bad.figure('peak')),
      badFinish: shown(bad.figure('finish'), 1),
      plainCalls: shown(plain.figure('callsPerSuccess'), 1),
      plainFinish: shown(plain.figure('finish'), 1),
      goodCalls: shown(good.figure('callsPerSuccess'), 1),
      goodPeak: shown(good.figure('peak')),
      goodFinish: shown(good.figure('finish'), 1),
    },
  };
}

function done(name: string, run: Results): Curve {
  let sum = 0;
  const points = run.report().all.series.goodput.map((each, second): [number, number] => {
    sum += each;
    return [second + 1, sum];
  });
  return { name, points };
}
