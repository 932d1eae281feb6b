import { parseScenario } from '@holdfast/config';
import { type Results, simulateAsync } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { suggestions } from '../../examples/snippets/src/patterns/graceful-degradation-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, overTime } from './simulated.ts';

const scenario = parseScenario(`
id: graceful-degradation
duration: 90s
services:
  page: { workers: 400, time: 20ms, calls: [{ to: suggestions }] }
  suggestions: { workers: 100, time: { exponential: 20ms } }
clients: { reader: { to: page, arrivals: { poisson: 100/s }, policy: reader } }
faults: [{ kind: hang, service: suggestions, from: 30s, until: 60s }]
policies: { reader: { attempts: 1, patience: 3s, attemptTimeout: none, budget: false, breaker: false } }
`);

const TEXT = `
*A service shows 100 pages a second with suggestions. From 30 s to 60 s, nobody answers the calls for suggestions. Readers leave after 3 s. If a page cannot be shown
without suggestions, {badShare} % of the pages are shown in this time. After it, {badAfter} % are shown, because all workers still wait for answers that never come.
With a fallback, {goodShare} % of the pages are shown in this time. Half of them are shown within {goodP50} ms, and 99 % within {goodP99} ms. {goodWithout} pages
have no suggestions.*`;

export async function gracefulDegradation(): Promise<PatternRun> {
  const [bad, good] = [await run(byHand), await run(suggestions.spec)];
  const x = { says: 'no suggestions for 30 s', ticks: [0, 30, 60, 90], unit: ' s' };
  const trouble = [30, 60] as const;
  const slow = (results: Results) => results.report().all.series.p99.map((each) => 1000 * (each ?? 0));
  const hanging = { from: 30_000, until: 60_000 };
  const after = { from: 60_000, until: 85_000 };
  const percent = (results: Results, part: typeof hanging) => shown(100 * results.figure('success', part));
  return {
    plots: {
      'graceful-degradation': figure('Pages whose suggestions do not come', [
        {
          title: 'Pages',
          x,
          y: { says: 'shown within 3 s, of those asked for', ticks: [0, 25, 50, 75, 100], unit: ' %' },
          curves: [overTime('suggestions are needed', shareOf(bad)), overTime('Holdfast', shareOf(good))],
          trouble,
        },
        {
          title: 'How long a page takes, with the fallback',
          x,
          y: { says: 'p99', ticks: [0, 100, 200, 300, 400], unit: ' ms' },
          curves: [overTime('Holdfast', slow(good))],
          trouble,
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badShare: percent(bad, hanging),
      badAfter: percent(bad, after),
      goodShare: percent(good, hanging),
      goodP50: shown(1000 * good.figure('p50', hanging)),
      goodP99: shown(1000 * good.figure('p99', hanging)),
      goodWithout: shown(good.report().tiers['page → suggestions']!.fallbacks),
    },
  };
}

function run({ name: _, ...spec }: PolicySpec): Promise<Results> {
  return simulateAsync(scenario, { policy: 'shown', policies: new Map([['shown', spec]]) });
}

function shareOf(results: Results): number[] {
  return results.report().all.series.success.map((each) => 100 * (each ?? 0));
}
