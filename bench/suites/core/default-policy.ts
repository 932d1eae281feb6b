import * as cockatiel from 'cockatiel';
import { policy } from 'holdfast';
import type { Case } from '../../harness.ts';
import { answer, bare } from './operation.ts';
import { cockatielBreaker } from './peer-breakers.ts';

/** What everybody uses: patience, retries, a budget, a breaker, an attempt timeout that learns, packs and notices. */
const ours = policy();

/** The nearest that a peer has: no budget, no patience, no learning. */
const cockatielWrap = cockatiel.wrap(
  cockatiel.retry(cockatiel.handleAll, { maxAttempts: 3, backoff: new cockatiel.ExponentialBackoff() }),
  cockatielBreaker(10_000),
  cockatiel.timeout(2_500, { strategy: cockatiel.TimeoutStrategy.Aggressive, abortOnReturn: false }),
);

export const defaultPolicy: Case = {
  case: 'policy()',
  unit: 'ns',
  better: 'lower',
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await ours.run(answer);
  },
  peers: {
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielWrap.execute(answer);
    },
  },
  bars: [{ aheadOf: 'cockatiel', times: 1 }],
};
