import { createFetch } from '@holdfast/http';
import { policy } from 'holdfast';

/** The contract says 100 a second. Calls wait here for their turn, for a minute at most, and not at the server. */
export const geocoder = policy({
  name: 'geocoder',
  patience: '1m',
  limiter: { rate: '100/s', burst: 10, wait: '1m' },
});

export function locate(address: string): Promise<Response> {
  // A 429 is understood as well: no attempt is sent before the time that `Retry-After` names.
  const send = createFetch({ policy: geocoder });
  return send(`https://geo.test/?q=${address}`);
}
