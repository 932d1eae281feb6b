import { policy } from 'holdfast';

/** All callers that failed together come back together, to the millisecond. */
export const inStep = policy({ backoff: { strategy: 'constant', base: '1s', jitter: 'none' } });

export function price(item: string): Promise<Response> {
  return inStep.run(({ signal }) => fetch(`https://prices.test/${item}`, { signal }));
}
