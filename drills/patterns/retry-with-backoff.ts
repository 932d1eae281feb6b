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
*280 calls a second at a service that can do 300 and stands still from 20 s to 24 s; an attempt is given up after 1 s. With four attempts at once it gets up to
{badPeak} calls a second, and from 60 s on {badGoodput} calls a second are answered in time, although nothing is broken any more. With
the policy of this page it gets {goodPeak} at most, is back to normal {goodRecovery} s after the stall, and {goodGoodput} calls a second are answered.*`;

const FIRST_WAIT = `
| first wait, full jitter | p99 beside a full queue (S01b) | p99 on a mild day | attempts in an outage (S02) | surge after it (S02) | attempts for a call (S01b) | saved from restarts of 0.5 s |
|---|---|---|---|---|---|---|
| at most 100 ms (ours) | {queue100} s | {mild100} s | {outage100} | {surge100} × | {load100} | {saved100} % |
| at most 200 ms | {queue200} s | {mild200} s | {outage200} | {surge200} × | {load200} | {saved200} % |
| at most 1 s | {queue1000} s | {mild1000} s | {outage1000} | {surge1000} × | {load1000} | {saved1000} % |`;

const REASONS = `
- A person waits for most calls. With a first wait of up to a second, the slowest of a hundred calls takes {queue1000} s instead of {queue100} s beside a full queue, and
{mild1000} s instead of {mild100} s when one attempt in twenty fails.
- A longer first wait hardly spares a server that is down: {fewer} % fewer attempts in an outage of 30 s. Beside a full queue the load is the same: {load100} attempts for a call, and
{load1000}. The budget and the breaker limit retries; the first wait does not.
- It is better in one case, the last column: twenty clients with few calls each, and interruptions of half a second. Waits that begin with 100 ms get {saved100} % of the
calls through, and waits that begin with a second {saved1000} %. Where nobody waits for the answer, say \`backoff: { base: '1s' }\`. A server that knows when it is back says so in \`Retry-After\`.
- A 429 is different: after it the base is at least 1 s, because the server has said that it has enough.`;

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
