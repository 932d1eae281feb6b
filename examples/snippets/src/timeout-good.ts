import { policy } from 'holdfast';

/** Each attempt may take what attempts take. The signal ends the call itself, not only the wait for it. */
export const profiles = policy({ patience: '3s', attemptTimeout: 'auto' });

export function profile(user: string): Promise<Response> {
  return profiles.run(({ signal }) => fetch(`https://profiles.test/${user}`, { signal }));
}
