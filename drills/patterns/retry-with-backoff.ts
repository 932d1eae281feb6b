import { readStorm, simulate } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { products } from '../../examples/snippets/src/patterns/retry-with-backoff-good.ts';
import { type Curve, figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, overTime, runOf } from './simulated.ts';

const stall = `
id: retry-with-backoff
duration: 80s
services: { shop: { workers: 30, time: { exponential: 100ms } } }
clients: { web: { to: shop, arrivals: { poisson: 280/s }, attemptTimeout: 1s } }
faults: [{ kind: stall, service: shop, from: 20s, until: 24s }]
measure: { from: 5s }
`;

/** One attempt in twenty fails. */
const mildDay = `
id: mild-day
duration: 60s
services: { shop: { time: { exponential: 50ms } } }
clients: { web: { to: shop, arrivals: { poisson: 100/s }, failing: 0.05 } }
`;

/** Twenty restarts: for half a second all calls of twenty clients are refused. */
const restarts = `
id: restarts
duration: 340s
services: { shop: { time: { exponential: 50ms } } }
clients: { web: { to: shop, count: 20, state: each, arrivals: { poisson: 100/s } } }
faults: [{ kind: flap, service: shop, from: 30s, until: 340s, down: 500ms, up: 15s }]
`;

/** The anti-pattern as a policy: four attempts at once. */
export const atOnce: PolicySpec = { ...byHand, attempts: 4 };

const TEXT = `
*A service that can serve 300 calls a second gets 280 calls a second. It stands still from 20 s to 24 s. An attempt is given up after 1 s. With four attempts without
a wait, the service gets up to {badPeak} calls a second. From 60 s on, {badGoodput} calls a second are answered in time, although the cause is over. With the policy
of this page, the service gets at most {goodPeak} calls a second. It is back to normal {goodRecovery} s after the stall, and then {goodGoodput} calls a second are
answered.*`;

const FIRST_WAIT = `
| longest first wait | p99 while a queue is full (S01b) | p99 when 5 % of the attempts fail | attempts in an outage (S02) | peak load after the outage (S02) | attempts for each call (S01b) | calls saved during restarts of 0.5 s |
|---|---|---|---|---|---|---|
| 100 ms (the default) | {queue100} s | {mild100} s | {outage100} | {surge100} × | {load100} | {saved100} % |
| 200 ms | {queue200} s | {mild200} s | {outage200} | {surge200} × | {load200} | {saved200} % |
| 1 s | {queue1000} s | {mild1000} s | {outage1000} | {surge1000} × | {load1000} | {saved1000} % |`;

const REASONS = `
- A person waits for most calls. With a first wait of up to a second, the p99 is {queue1000} s instead of {queue100} s while a queue is full. When one attempt in twenty
fails, the p99 is {mild1000} s instead of {mild100} s.
- A longer first wait hardly helps a server that is down. In an outage of 30 s, the server gets {fewer} % fewer attempts. While a queue is full, {load100} attempts are made
for each call with the short first wait, and {load1000} with the long one. The budget and the breaker limit retries; the first wait does not.
- A longer first wait is better in the case that the last column shows: twenty clients make few calls each, and the service is interrupted for half a second again and
again. Of the calls that meet an interruption, {saved100} % succeed if the waits begin with 100 ms, and {saved1000} % if the waits begin with a second. If nobody waits
for the answer, set \`backoff: { base: '1s' }\`. A server that knows when it will be back should send \`Retry-After\`.
- After a 429, the first wait is up to 1 s or more, because the server has said that it gets too many calls.`;

const bases = [100, 200, 1000];

export function retryWithBackoff(): PatternRun {
  const bad = runOf(stall, atOnce);
  const good = runOf(stall, products.spec);
  const x = { says: 'a stall of 4 s, and what comes after', ticks: [0, 20, 40, 60, 80], unit: ' s' };
  const both = (pick: (run: typeof bad) => readonly number[]): Curve[] => [
    overTime('four attempts at once', pick(bad), 2),
    overTime('Holdfast', pick(good), 2),
  ];
  const late = { from: 60_000 };
  const waits = bases.map(firstWait);
  return {
    plots: {
      'retry-with-backoff': figure('Four attempts at once, and retries with backoff', [
        {
          title: 'What the service gets',
          x,
          y: { says: 'calls a second', ticks: [0, 300, 600, 900, 1200] },
          curves: both((run) => run.report().all.series.attempts),
          trouble: [20, 24],
        },
        {
          title: 'What customers get',
          x,
          y: { says: 'answers a second, in time', ticks: [0, 100, 200, 300] },
          curves: both((run) => run.report().all.series.goodput),
          trouble: [20, 24],
        },
      ]),
    },
    texts: { caption: TEXT, 'first wait': FIRST_WAIT, reasons: REASONS },
    figures: {
      badPeak: shown(bad.figure('peak')),
      badGoodput: shown(bad.figure('goodput', late)),
      goodPeak: shown(good.figure('peak')),
      goodRecovery: shown(good.figure('recovery')),
      goodGoodput: shown(good.figure('goodput', late)),
      ...Object.assign({}, ...waits.map(({ figures }) => figures)),
      fewer: shown(100 * (1 - waits.at(-1)!.outageAttempts / waits[0]!.outageAttempts)),
    },
  };
}

/** The figures of the default policy with another first wait. */
function firstWait(baseMs: number): { outageAttempts: number; figures: Record<string, string> } {
  const spec: PolicySpec = { backoff: { base: `${baseMs}ms` } };
  const storm = (name: string, policy: PolicySpec, durationMs: number) =>
    simulate(readStorm(name), { policy: 'shown', policies: new Map([['shown', policy]]), durationMs });
  const queue = storm('s01b', spec, 60_000);
  const outage = storm('s02', { ...spec, attempts: 'unlimited', patience: '10m' }, 120_000);
  const outageAttempts = outage.figure('attempts', { from: 60_000, until: 90_000 });
  const settled = { from: 30_000 };
  const figures = {
    [`queue${baseMs}`]: shown(queue.figure('p99', settled), 2),
    [`load${baseMs}`]: shown(queue.figure('multiplication', settled), 2),
    [`mild${baseMs}`]: shown(runOf(mildDay, spec).figure('p99'), 2),
    [`outage${baseMs}`]: shown(outageAttempts),
    [`surge${baseMs}`]: shown(outage.figure('surge', { from: 90_000 }), 2),
    [`saved${baseMs}`]: shown(100 * savedFromRestarts(spec)),
  };
  return { outageAttempts, figures };
}

/** Of the calls that began while the service was down, the share that succeeded in the end. */
function savedFromRestarts(spec: PolicySpec): number {
  const run = runOf(restarts, spec);
  let saved = 0;
  let lost = 0;
  for (let from = 30_000; from < 340_000; from += 15_500) {
    const down = { from, until: from + 500 };
    saved += run.figure('successes', down);
    lost += run.figure('failures', down);
  }
  return saved / (saved + lost);
}
