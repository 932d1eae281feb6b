import { type Duration, durationMs } from '../policy/duration.ts';
import { Alarm, type Clock } from '../time/clock.ts';

/**
 * What one call of a scripted operation does: an Error is thrown, `'hang'` never answers, a function is called, and
 * anything else is the answer. `after` and `heeding` add to any of them.
 */
export type Beat = unknown;

/** One call that was made, in the order they were made. */
export interface Call {
  /** When, on the scale of the clock's `now`. */
  readonly at: number;
  /** The `attempt` of the context; without a context, the number of the call. */
  readonly attempt: number;
  /** Whether the attempt's signal has aborted. Read when it is accessed. */
  readonly aborted: boolean;
}

/** An operation that plays a script and records its calls. */
export interface Scripted<T> {
  (context?: ScriptedContext): Promise<T>;
  readonly calls: readonly Call[];
  /** The `attempt` of each call. */
  readonly attempts: readonly number[];
}

interface ScriptedContext {
  readonly attempt?: number;
  readonly signal?: AbortSignal;
}

class Delayed<B> {
  readonly ms: number;
  readonly beat: B;
  constructor(ms: number, beat: B) {
    this.ms = ms;
    this.beat = beat;
  }
}

class Heeding<B> {
  readonly beat: B;
  constructor(beat: B) {
    this.beat = beat;
  }
}

type ValueOf<B> = B extends Error | 'hang'
  ? never
  : B extends Delayed<infer Inner> | Heeding<infer Inner>
    ? ValueOf<Inner>
    : B extends (...args: never[]) => infer Result
      ? Awaited<Result>
      : B;

/**
 * Plays one beat for each call, and repeats the last one for all further calls. A call ignores its signal unless its beat
 * is `heeding`: an answer that comes after the abort is the harder case.
 */
export function scripted<const Beats extends readonly Beat[]>(
  clock: Clock,
  ...beats: Beats
): Scripted<ValueOf<Beats[number]>> {
  type T = ValueOf<Beats[number]>;
  const calls: Call[] = [];
  const operation = async (context: ScriptedContext = {}): Promise<T> => {
    const beat = beats[Math.min(calls.length, beats.length - 1)];
    calls.push({
      at: clock.now(),
      attempt: context.attempt ?? calls.length + 1,
      // A getter, because a context creates its signal when it is first read: recording a call must not cause that.
      get aborted() {
        return context.signal?.aborted ?? false;
      },
    });
    return play(clock, beat, context) as Promise<T>;
  };
  return Object.defineProperties(operation, {
    calls: { value: calls },
    attempts: { get: () => calls.map(({ attempt }) => attempt) },
  }) as Scripted<T>;
}

/** Plays `beat` after a time on the script's clock. */
export function after<const B>(duration: Duration, beat: B): Delayed<B> {
  return new Delayed(durationMs(duration), beat);
}

/** Plays `beat` until the attempt's signal aborts, then throws its reason at once, as `fetch` does. */
export function heeding<const B>(beat: B): Heeding<B> {
  return new Heeding(beat);
}

/** `signal` is passed only for a beat that is `heeding`. */
async function play(
  clock: Clock,
  beat: Beat,
  context: ScriptedContext,
  signal?: AbortSignal,
): Promise<unknown> {
  if (beat instanceof Heeding) return play(clock, beat.beat, context, context.signal);
  if (beat instanceof Delayed) {
    await pause(clock, beat.ms, signal);
    return play(clock, beat.beat, context, signal);
  }
  if (beat === 'hang') return pause(clock, Infinity, signal);
  if (beat instanceof Error) throw beat;
  return typeof beat === 'function' ? beat(context) : beat;
}

class Bell extends Alarm {
  readonly ring: () => void;
  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const bell = new Bell(() => {
      signal?.removeEventListener('abort', leave);
      resolve();
    });
    const leave = () => {
      clock.clear(bell);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    if (ms < Infinity) clock.set(bell, clock.now() + ms);
  });
}
