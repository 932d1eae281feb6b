import type { Results } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { sessions } from '../../examples/snippets/src/patterns/jitter-good.ts';
import { type Curve, figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, runOf } from './simulated.ts';

/** The gateway can do 500 a second, and an attempt is given up after 5 s: of 5,000 at once, half are too late. */
const scenario = `
id: jitter
duration: 120s
services: { gateway: { workers: 20, time: { exponential: 40ms } } }
clients: { session: { to: gateway, count: 5000, state: each, arrivals: { burst: 2s }, attemptTimeout: 5s } }
faults: [{ kind: refuse, service: gateway, from: 0s, until: 20s }]
`;

/** The anti-pattern as a policy: waits of 0.5 s that double up to 32 s, the same for all. */
export const inStep: PolicySpec = {
  ...byHand,
  attempts: 'unlimited',
  patience: '10m',
  backoff: { base: '500ms', cap: '32s', jitter: 'none' },
};

const TEXT = `
*5,000 sessions lose their connection at 2 s. The gateway is down until 20 s, and then accepts 50 sessions in 100 ms. Without jitter, all {badPeak} sessions try to
connect in the same 100 ms. The gateway connects {badZombies} sessions that have already given up, and the last session is back at {badFinish} s. With full jitter,
at most {goodPeak} sessions try to connect in 100 ms. The gateway connects {goodZombies} sessions that have already given up, and the last session is back at
{goodFinish} s. With full jitter {goodAttempts} attempts are made, and without jitter {badAttempts}. Most attempts are refused during the outage.*`;

const stepMs = 100;

export function jitter(): PatternRun {
  const bad = runOf(scenario, inStep);
  const good = runOf(scenario, sessions.spec);
  const x = {
    says: 'cut off at 2 s, and the gateway is back at 20 s',
    ticks: [0, 30, 60, 90, 120],
    unit: ' s',
  };
  const after = { from: 20_000, step: stepMs };
  return {
    plots: {
      jitter: figure('Sessions that come back in step, and apart', [
        {
          title: 'What the gateway gets',
          x,
          y: { says: 'attempts in 100 ms', ticks: [1, 10, 100, 1000, 10_000], isLog: true },
          curves: [peaks('no jitter', bad), peaks('Holdfast', good)],
          trouble: [0, 20],
        },
        {
          title: 'Who is back',
          x,
          y: { says: 'of 5,000 sessions', ticks: [0, 1000, 2000, 3000, 4000, 5000] },
          curves: [connected('no jitter', bad), connected('Holdfast', good)],
          trouble: [0, 20],
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badPeak: shown(bad.figure('peak', after)),
      badZombies: shown(bad.figure('zombies')),
      badFinish: shown(bad.figure('finish')),
      badAttempts: shown(bad.figure('attempts')),
      goodPeak: shown(good.figure('peak', after)),
      goodZombies: shown(good.figure('zombies')),
      goodFinish: shown(good.figure('finish')),
      goodAttempts: shown(good.figure('attempts')),
    },
  };
}

function peaks(name: string, { record }: Results): Curve {
  const { attempts } = record.clients.get('session')!;
  const points: [number, number][] = [];
  for (let at = 0; at < record.durationMs; at += stepMs)
    points.push([at / 1000, attempts.sum(at, at + stepMs)]);
  return { name, points };
}

function connected(name: string, { record }: Results): Curve {
  const { succeeded } = record.clients.get('session')!;
  const points: [number, number][] = [];
  for (let at = 0; at <= record.durationMs; at += 1000) points.push([at / 1000, succeeded.sum(0, at)]);
  return { name, points };
}
