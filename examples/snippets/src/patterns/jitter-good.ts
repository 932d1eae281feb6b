import { policy } from 'holdfast';

/** A session tries for ten minutes. Each wait is a random time from zero to the full wait: full jitter, the default. */
export const sessions = policy({ attempts: 'unlimited', patience: '10m' });

export function connect(open: () => Promise<string>): Promise<string> {
  return sessions.run(open);
}
