import { policy } from 'holdfast';

/** The contract says ten a second. Who comes a little too early waits for its turn. */
export const geocoder = policy({ limiter: { rate: '10/s', burst: 10, wait: '500ms' } });

export function locate(address: string): Promise<Response> {
  return geocoder.run(({ signal }) => fetch(`https://geo.test/?q=${address}`, { signal }));
}
