import { Effect } from 'effect';
import { breaker, definePolicy } from 'holdfast';
import { Circuit, SlidingCountBreaker } from 'mollitia';
import Opossum from 'opossum';
import type { Case } from '../../harness.ts';
import { answer, bare } from './operation.ts';
import {
  cockatielBreaker,
  cockatielConsecutive,
  effectBreaker,
  mollitiaOptions,
  opossumOptions,
} from './peer-breakers.ts';

const OPEN_MS = 10_000;
const KEY = 'target';

const closed = definePolicy([breaker])({ breaker: { slow: false } });
const cockatielClosed = cockatielBreaker(OPEN_MS);
const cockatielInARow = cockatielConsecutive(OPEN_MS);
const opossumClosed = new Opossum(answer, opossumOptions(OPEN_MS));
const mollitiaClosed = new Circuit({
  func: answer,
  options: { modules: [new SlidingCountBreaker(mollitiaOptions(OPEN_MS))] },
});
const effectClosed = effectBreaker(OPEN_MS).execute(Effect.promise(answer), { key: KEY });

export const breakerSuccess: Case = {
  case: 'breaker success',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 3.6 }, { aheadOf: 'cockatiel', times: 1 }],
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await closed.run(answer);
  },
  peers: {
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielClosed.execute(answer);
    },
    async 'cockatiel, in a row'(times) {
      for (let i = 0; i < times; i++) await cockatielInARow.execute(answer);
    },
    async opossum(times) {
      for (let i = 0; i < times; i++) await opossumClosed.fire();
    },
    async mollitia(times) {
      for (let i = 0; i < times; i++) await mollitiaClosed.execute();
    },
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromise(effectClosed);
    },
  },
};
