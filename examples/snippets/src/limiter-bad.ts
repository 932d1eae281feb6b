import { policy } from 'holdfast';

/** The contract says sixty a minute. The default burst of a hundred is more than that at once. */
export const overdrawn = policy({ limiter: { rate: '60/m' } });

export function locate(address: string): Promise<Response> {
  return overdrawn.run(({ signal }) => fetch(`https://geo.test/?q=${address}`, { signal }));
}
