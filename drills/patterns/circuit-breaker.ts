import { stubborn } from '../../examples/snippets/src/patterns/circuit-breaker-bad.ts';
import { stock } from '../../examples/snippets/src/patterns/circuit-breaker-good.ts';
import { type Curve, figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { overTime, runOf } from './simulated.ts';

const scenario = `
id: circuit-breaker
duration: 280s
services: { stock: { workers: 30, time: { exponential: 100ms } } }
clients: { web: { to: stock, arrivals: { poisson: 280/s } } }
faults: [{ kind: stall, service: stock, from: 40s, until: 50s }]
measure: { from: 10s }
`;

const TEXT = `
*A service that can serve 300 calls a second gets 280 calls a second, and stands still for 10 s. Both policies have a budget and a timeout of 1 s. Without the
breaker, {badStall} attempts are sent while the service stands still, and wait in its queue. Later the service works on {badZombies} attempts whose callers have
given up. It is back to normal after {badRecovery} s. With the breaker, {goodStall} attempts are sent. The service works on {goodZombies} attempts whose callers have
given up, and is back to normal after {goodRecovery} s.*`;

export function circuitBreaker(): PatternRun {
  const [bad, good] = [runOf(scenario, stubborn.spec), runOf(scenario, stock.spec)];
  const x = { says: 'a stall of 10 s, and what comes after', ticks: [0, 70, 140, 210, 280], unit: ' s' };
  const both = (pick: (run: typeof bad) => readonly number[]): Curve[] => [
    overTime('no breaker', pick(bad), 4),
    overTime('Holdfast', pick(good), 4),
  ];
  const stalled = { from: 40_000, until: 50_000 };
  return {
    plots: {
      'circuit-breaker': figure('A service after a stall, without and with a breaker', [
        {
          title: 'What callers get',
          x,
          y: { says: 'answers a second, in time', ticks: [0, 100, 200, 300] },
          curves: both((run) => run.report().all.series.goodput),
          trouble: [40, 50],
        },
        {
          title: 'What is done for nobody',
          x,
          y: { says: 'calls a second whose caller has given up', ticks: [0, 100, 200, 300] },
          curves: both((run) => run.report().services.stock!.series.zombies),
          trouble: [40, 50],
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badStall: shown(bad.figure('attempts', stalled)),
      badZombies: shown(bad.figure('zombies')),
      badRecovery: shown(bad.figure('recovery')),
      goodStall: shown(good.figure('attempts', stalled)),
      goodZombies: shown(good.figure('zombies')),
      goodRecovery: shown(good.figure('recovery')),
    },
  };
}
