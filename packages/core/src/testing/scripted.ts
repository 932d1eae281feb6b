import { type Duration, durationMs } from '../policy/duration.ts';
import { Alarm, type Clock } from '../time/clock.ts';

/**
 * What one call of a scripted operation does. An Error is thrown, `'hang'` never answers, a function is called, and any
 * other value is the answer. `after` and `heeding` can wrap it.
 */
export type Beat = unknown;

/** One call that the operation received. */
export interface Call {
  /** When the call was made, on the scale of `Clock.now`. */
  readonly at: number;
  /** The `attempt` of the context; if there is no context, the number of the call. */
  readonly attempt: number;
  /** Whether the signal of the attempt has aborted so far. */
  readonly aborted: boolean;
}

/** An operation that follows a script and records its calls. */
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
 * Makes an operation that plays one item of the script for each call, and repeats the last item. A call ignores its
 * signal unless the item is `heeding`.
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
      // A getter, because reading the signal of a context would create the signal.
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

/** Plays `beat` (an item of a script) after this time on the clock. */
export function after<const B>(duration: Duration, beat: B): Delayed<B> {
  return new Delayed(durationMs(duration), beat);
}

/** Plays `beat`, but throws the reason of the attempt's signal as soon as it aborts, as `fetch` does. */
export function heeding<const B>(beat: B): Heeding<B> {
  return new Heeding(beat);
}

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
