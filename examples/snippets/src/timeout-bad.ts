import { policy } from 'holdfast';

/** Four attempts of five seconds in a patience of ten: the third and the fourth are never made. */
export const greedy = policy({ patience: '10s', attempts: 4, attemptTimeout: '5s' });

/** The signal is not passed on: an attempt that was given up goes on, and its socket stays taken. */
export function profile(user: string): Promise<Response> {
  return greedy.run(() => fetch(`https://profiles.test/${user}`));
}
