import { retryInterceptor } from '@holdfast/http';
import { type Dispatcher, RetryAgent, request } from 'undici';
import type { Case } from '../../harness.ts';
import { agent, policy, spread } from './load.ts';

export function interceptorCase(origin: string): Case {
  const through = (dispatcher: Dispatcher) =>
    spread(async () => (await request(origin, { dispatcher })).body.text());
  return {
    case: 'interceptor',
    unit: 'ns',
    better: 'lower',
    bars: [{ toFloorMax: 1.1 }, { aheadOf: 'undici RetryAgent', times: 1 }],
    floor: through(agent()),
    ours: through(agent().compose(retryInterceptor(policy))),
    peers: { 'undici RetryAgent': through(new RetryAgent(agent())) },
  };
}
