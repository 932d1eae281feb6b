import { breathe } from '../harness.ts';
import { serve } from '../worker.ts';
import type { Cancelling, WaitersAnswer, WaitersJob } from './waiters.ts';

/** Begins one call that fails at once and waits to be tried again. */
type Start = (signal: AbortSignal | undefined) => Promise<unknown>;

const DELAY_MIN_MS = 300_000;
const DELAY_MAX_MS = 600_000;
const ATTEMPTS = 4;
const WARM_UP_COUNT = 2000;

// Loaded when they are asked for, so that timers can be wrapped before.
const contestants: Record<string, (cancelling: Cancelling) => Promise<Start>> = {
  async floor(cancelling) {
    return cancelling === 'shared' ? sleepTogether() : sleep;
  },
  async ours() {
    const { any, definePolicy, retry } = await import('holdfast');
    const policy = definePolicy([retry, any])({
      patience: 'unlimited',
      attempts: ATTEMPTS,
      retryOn: 'any',
      backoff: { strategy: 'constant', base: DELAY_MAX_MS, cap: DELAY_MAX_MS, jitter: 'equal' },
    });
    return (signal) => policy.run(fail, { signal });
  },
  async 'p-retry'() {
    const { default: pRetry } = await import('p-retry');
    const options = { retries: ATTEMPTS - 1, minTimeout: DELAY_MIN_MS, randomize: true };
    return (signal) => pRetry(fail, signal === undefined ? options : { ...options, signal });
  },
  async cockatiel() {
    const { DelegateBackoff, handleAll, retry } = await import('cockatiel');
    const policy = retry(handleAll, {
      maxAttempts: ATTEMPTS - 1,
      backoff: new DelegateBackoff(someDelayMs),
    });
    return (signal) => policy.execute(fail, signal);
  },
};

serve<WaitersJob, WaitersAnswer>(async ({ contestant, cancelling, countsTimers, count }) => {
  const load = contestants[contestant];
  if (load === undefined) throw new RangeError(`There is no contestant "${contestant}".`);
  const timers = countsTimers ? countTimers() : { peak: Number.NaN };
  const start = await load(cancelling);
  // Where timers are counted, those of a warm-up would be counted with them: nothing ends its waits.
  if (!countsTimers) await wait(start, cancelling, WARM_UP_COUNT);
  return { ...(await wait(start, cancelling, count)), timers: timers.peak };
});

async function wait(
  start: Start,
  cancelling: Cancelling,
  count: number,
): Promise<Omit<WaitersAnswer, 'timers'>> {
  const controllers = Array.from({ length: cancelling === 'own' ? count : 1 }, () => new AbortController());
  const signals = controllers.map(({ signal }) => signal);
  const signalOf = (call: number) => (cancelling === 'none' ? undefined : signals[call % signals.length]);
  const waiting: Promise<unknown>[] = new Array(count);
  const bytesBefore = await settledHeap();

  const starting = process.cpuUsage();
  for (let call = 0; call < count; call++) waiting[call] = start(signalOf(call));
  // Every microtask has run by then, so every call has failed and waits.
  await breathe();
  const startUs = elapsedUs(starting);
  const bytes = (await settledHeap()) - bytesBefore;

  let cancelUs = Number.NaN;
  if (cancelling !== 'none') {
    const gone = Promise.allSettled(waiting);
    await breathe();
    const reason = new Error('left');
    const leaving = process.cpuUsage();
    for (const controller of controllers) controller.abort(reason);
    await gone;
    cancelUs = elapsedUs(leaving);
  }
  return {
    bytes: bytes / count,
    startNs: (startUs * 1000) / count,
    cancelNs: (cancelUs * 1000) / count,
  };
}

function elapsedUs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

/** A wait as written by hand, with an abort listener of its own if it can be cancelled. */
function sleep(signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise<void>((resolve, reject) => {
    if (signal === undefined) {
      setTimeout(resolve, someDelayMs());
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, someDelayMs());
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** The same for many waits on one signal: one listener ends them all. */
function sleepTogether(): Start {
  const waitsOf = new WeakMap<AbortSignal, Set<() => void>>();
  return (signal) =>
    new Promise<void>((resolve, reject) => {
      if (signal === undefined) throw new TypeError('Waiting together needs a signal, got none.');
      let waits = waitsOf.get(signal);
      if (waits === undefined) {
        const all = new Set<() => void>();
        signal.addEventListener('abort', () => {
          for (const end of all) end();
        });
        waitsOf.set(signal, all);
        waits = all;
      }
      const end = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        waits.delete(end);
        resolve();
      }, someDelayMs());
      waits.add(end);
    });
}

function someDelayMs(): number {
  return DELAY_MIN_MS * (1 + Math.random());
}

/** One error for all, so that its stack does not weigh on every waiter. */
const down = new Error('down');

async function fail(): Promise<never> {
  throw down;
}

async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    await breathe();
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

/** Counts the host timers that are alive, and the most there were. */
function countTimers(): { alive: number; peak: number } {
  const counts = { alive: 0, peak: 0 };
  const running = new WeakSet<object>();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const counting = (task: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
    const timer = set(() => {
      ended(timer);
      task(...args);
    }, delayMs);
    running.add(timer);
    counts.alive += 1;
    counts.peak = Math.max(counts.peak, counts.alive);
    return timer;
  };
  const ended = (timer: unknown) => {
    if (typeof timer === 'object' && timer !== null && running.delete(timer)) counts.alive -= 1;
  };
  globalThis.setTimeout = Object.assign(counting, { __promisify__: set.__promisify__ }) as typeof setTimeout;
  globalThis.clearTimeout = (timer) => {
    ended(timer);
    clear(timer);
  };
  return counts;
}
