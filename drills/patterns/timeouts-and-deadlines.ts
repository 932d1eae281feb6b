import { profiles } from '../../examples/snippets/src/patterns/timeouts-and-deadlines-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, overTime, runOf, waitingIn } from './simulated.ts';

const hang = `
id: timeouts
duration: 60s
services: { profiles: { workers: 200, time: { exponential: 100ms } } }
clients: { web: { to: profiles, arrivals: { poisson: 100/s } } }
faults: [{ kind: hang, service: profiles, from: 20s, until: 40s }]
`;

/** The clients of both servers are the same: one attempt, and 2 s of patience. */
const stall = (queue: string) => `
id: deadlines
duration: 100s
services: { profiles: { workers: 10, time: { exponential: 100ms }, queue: { ${queue} } } }
clients: { web: { to: profiles, arrivals: { poisson: 80/s }, patience: 2s } }
faults: [{ kind: stall, service: profiles, from: 20s, until: 30s }]
measure: { from: 5s }
`;

const once = { attempts: 1, attemptTimeout: 'none', budget: false, breaker: false } as const;

const TEXT = `
*Left: a service gets 100 calls a second. From 20 s to 40 s it accepts requests but never answers them. Without a timeout, {badWaiting} calls wait, and they still
wait when the service works again. With a patience of 2 s, at most {goodWaiting} calls wait. Right: customers have a patience of 2 s, and a server stands still for
10 s. If the server executes all requests in their order, it works for {badZombies} customers who have left. It is back to normal {badRecovery} s after the stall. If
the server drops requests whose time is over, it works for {goodZombies} customers who have left, and is back to normal after {goodRecovery} s.*`;

export function timeoutsAndDeadlines(): PatternRun {
  const [bad, good] = [waitingIn(runOf(hang, byHand)), waitingIn(runOf(hang, profiles.spec))];
  const inTurn = runOf(stall('max: unlimited'), once);
  const dropped = runOf(stall('dropExpired: true'), once);
  return {
    plots: {
      'timeouts-and-deadlines': figure('Calls without a timeout, and servers without a deadline', [
        {
          title: 'The client: a service hangs',
          x: { says: 'it hangs for 20 s', ticks: [0, 15, 30, 45, 60], unit: ' s' },
          y: { says: 'calls that wait', ticks: [0, 500, 1000, 1500, 2000] },
          curves: [overTime('without', bad), overTime('Holdfast', good)],
          trouble: [20, 40],
        },
        {
          title: 'The server: it stands still',
          x: { says: 'a stall of 10 s, and what comes after', ticks: [0, 25, 50, 75, 100], unit: ' s' },
          y: { says: 'answers a second, in time', ticks: [0, 25, 50, 75, 100] },
          curves: [
            overTime('without', inTurn.report().all.series.goodput, 2),
            overTime('Holdfast', dropped.report().all.series.goodput, 2),
          ],
          trouble: [20, 30],
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badWaiting: shown(bad.at(-1)!),
      goodWaiting: shown(Math.max(...good)),
      badZombies: shown(inTurn.figure('zombies')),
      badRecovery: shown(inTurn.figure('recovery')),
      goodZombies: shown(dropped.figure('zombies')),
      goodRecovery: shown(dropped.figure('recovery')),
    },
  };
}
