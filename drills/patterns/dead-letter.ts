import type { PolicySpec } from 'holdfast';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, overTime, runOf, waitingIn } from './simulated.ts';

const messages = 'arrivals: { poisson: 100/s }, poison: 0.01, poisonTime: 50ms, failing: 0.002';

/** Retried by the worker, which does nothing else until the message is done. */
const onTheSpot = `
id: dead-letter-inline
duration: 120s
services:
  worker: { workers: 8, calls: [{ to: handler }] }
  handler: { workers: unlimited, time: 40ms }
clients: { messages: { to: worker, ${messages}, policy: once } }
policies: { once: { attempts: 1, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
`;

/** Retried by the store: between two attempts no worker has the message. */
const fromTheStore = `
id: dead-letter
duration: 120s
services: { handler: { workers: 8, time: 40ms } }
clients: { messages: { to: handler, ${messages} } }
`;

/** The anti-pattern as a policy: a second of waiting, for ever. */
export const forEver: PolicySpec = {
  ...byHand,
  attempts: 'unlimited',
  patience: '10m',
  backoff: { strategy: 'constant', base: '1s', jitter: 'none' },
};

/** What a consumer does with an error that may pass: six attempts, then the event is parked. */
const sixAttempts: PolicySpec = { ...byHand, attempts: 6, backoff: { base: '500ms', cap: '1m' } };

const TEXT = `
*Eight workers get 100 messages a second, and each message takes 40 ms. One message in a hundred can never be handled. In the anti-pattern, a worker tries such a
message for ever, so eight such messages occupy all workers. After two minutes {badWaiting} messages wait, and {badDone} messages a second are handled in the last
minute. With Holdfast, a message gets six attempts and is then parked. After two minutes {goodWaiting} messages wait, and {goodDone} a second are handled.
{goodParked} messages are parked, and {goodLost} of the parked messages could have been handled.*`;

export function deadLetter(): PatternRun {
  const [bad, good] = [runOf(onTheSpot, forEver), runOf(fromTheStore, sixAttempts)];
  const x = { says: 'from the start', ticks: [0, 30, 60, 90, 120], unit: ' s' };
  const lastMinute = { from: 60_000 };
  return {
    plots: {
      'dead-letter': figure('Messages that can never be handled', [
        {
          title: 'What waits',
          x,
          y: { says: 'messages', ticks: [0, 3000, 6000, 9000, 12_000] },
          curves: [overTime('tried for ever', waitingIn(bad)), overTime('Holdfast', waitingIn(good))],
        },
        {
          title: 'What is handled',
          x,
          y: { says: 'messages a second', ticks: [0, 25, 50, 75, 100, 125] },
          curves: [
            overTime('tried for ever', bad.report().all.series.goodput, 2),
            overTime('Holdfast', good.report().all.series.goodput, 2),
          ],
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badWaiting: shown(waitingIn(bad).at(-1)!),
      badDone: shown(bad.figure('goodput', lastMinute)),
      goodWaiting: shown(waitingIn(good).at(-1)!),
      goodDone: shown(good.figure('goodput', lastMinute)),
      goodParked: shown(good.figure('failures')),
      goodLost: shown(good.figure('lostGood')),
    },
  };
}
