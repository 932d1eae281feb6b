import { type Clock, Timer } from 'holdfast';

/** Resolves with the value of `promise`, or with `undefined` after `ms`. */
export async function withTimeout<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer!: Timer;
  const timedOut = new Promise<undefined>((resolve) => {
    timer = new Timer(clock, () => resolve(undefined));
    timer.setIn(ms);
  });
  try {
    return await Promise.race([promise, timedOut]);
  } finally {
    timer.clear();
  }
}
