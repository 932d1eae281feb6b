import FakeTimers from '@sinonjs/fake-timers';
import { seededRandom } from 'holdfast/testing';

/** Time that moves only by `pass`. */
export interface FakeTime {
  /** Milliseconds since the trial began, whatever the wall clock says. */
  now(): number;
  /** Moves time on, and runs the timers that are due and all that follows from them. */
  pass(ms: number): Promise<void>;
  /** Sets the wall clock (`Date`) forward or back. Timers and the monotonic clock are not moved. */
  jump(ms: number): void;
}

/** So many rounds of promises, ticks and immediates follow from a call at most. */
const settlingRounds = 20;

/**
 * Runs a trial on fake time and seeded chance, the same for every library. Nothing waits, and every run sees the same.
 * Promises and `process.nextTick` are real.
 */
export async function inFakeTime<T>(trial: (time: FakeTime) => Promise<T>): Promise<T> {
  const clock = FakeTimers.install({
    now: Date.UTC(2026, 0, 1),
    toFake: [
      ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const),
      ...(['setImmediate', 'clearImmediate', 'Date', 'performance', 'hrtime'] as const),
    ],
  });
  const { random } = Math;
  Math.random = seededRandom('comparison');
  const beganAt = performance.now();
  const settle = async () => {
    for (let round = 0; round < settlingRounds; round++) await clock.tickAsync(0);
  };
  try {
    return await trial({
      now: () => performance.now() - beganAt,
      async pass(ms) {
        await settle();
        await clock.tickAsync(ms);
        await settle();
      },
      jump: (ms) => clock.setSystemTime(Date.now() + ms),
    });
  } finally {
    Math.random = random;
    clock.uninstall();
  }
}

/** What became of a promise, to be looked at without waiting for it. */
export interface Watched {
  readonly isSettled: boolean;
  readonly error: unknown;
}

export function watch(promise: Promise<unknown>): Watched {
  const watched = { isSettled: false, error: undefined as unknown };
  promise.then(
    () => {
      watched.isSettled = true;
    },
    (error: unknown) => {
      watched.isSettled = true;
      watched.error = error;
    },
  );
  return watched;
}
