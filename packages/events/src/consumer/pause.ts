import type { Clock } from 'holdfast';
import { Bell } from './bell.ts';

/** Waits, unless `signal` ends it. */
export function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    // An event that is over is heard of by nobody.
    if (signal?.aborted) return reject(signal.reason);
    const leave = () => {
      bell.clear();
      reject(signal?.reason);
    };
    const bell = new Bell(clock, () => {
      signal?.removeEventListener('abort', leave);
      resolve();
    });
    signal?.addEventListener('abort', leave, { once: true });
    bell.within(ms);
  });
}
