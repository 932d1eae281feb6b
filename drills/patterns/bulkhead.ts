import { unbounded } from '../../examples/snippets/src/patterns/bulkhead-bad.ts';
import { bounded } from '../../examples/snippets/src/patterns/bulkhead-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { overTime, runOf } from './simulated.ts';

const scenario = `
id: bulkhead
duration: 90s
services:
  shop: { workers: 50, routes: { reviews: { calls: [{ to: reviews }] }, basket: { time: 10ms } } }
  reviews: { workers: 1000, time: { exponential: 20ms } }
clients:
  reviews: { to: shop, route: reviews, arrivals: { poisson: 400/s }, policy: customer, patience: 1s }
  basket: { to: shop, route: basket, arrivals: { poisson: 400/s }, policy: customer, patience: 1s }
faults: [{ kind: extraLatency, extra: 300ms, service: reviews, from: 30s, until: 60s }]
policies: { customer: { attempts: 1, attemptTimeout: none, budget: false, breaker: false } }
`;

const TEXT = `
*A shop with 50 workers shows 400 baskets and 400 reviews a second. From 30 s to 60 s, each review takes 300 ms longer. A breaker does not count this as a failure.
Without a bulkhead, {badBaskets} % of the baskets and {badReviews} % of the reviews are shown in this time. With a bulkhead of 20 reviews in flight, {goodBaskets} %
of the baskets and {goodReviews} % of the reviews are shown.*`;

export function bulkhead(): PatternRun {
  const [bad, good] = [runOf(scenario, unbounded.spec), runOf(scenario, bounded.spec)];
  const panel = (title: string, clients: string) => {
    const shareOf = (run: typeof bad) =>
      run.report().clients[clients]!.series.success.map((share) => 100 * (share ?? 0));
    return {
      title,
      x: { says: 'reviews are slow for 30 s', ticks: [0, 30, 60, 90], unit: ' s' },
      y: { says: 'shown within 1 s, of those asked for', ticks: [0, 25, 50, 75, 100], unit: ' %' },
      curves: [overTime('no bulkhead', shareOf(bad)), overTime('Holdfast', shareOf(good))],
      trouble: [30, 60] as const,
    };
  };
  const shareIn = (run: typeof bad, clients: string) =>
    shown(100 * run.figure('success', { clients, from: 30_000, until: 60_000 }));
  return {
    plots: {
      bulkhead: figure('A slow dependency, without and with a bulkhead', [
        panel('Baskets, which need no reviews', 'basket'),
        panel('Reviews', 'reviews'),
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badBaskets: shareIn(bad, 'basket'),
      badReviews: shareIn(bad, 'reviews'),
      goodBaskets: shareIn(good, 'basket'),
      goodReviews: shareIn(good, 'reviews'),
    },
  };
}
