import { type Duration, durationMs } from '../policy/duration.ts';
import { Alarm, type Clock } from '../time/clock.ts';

/**
 * What one call of a scripted operation does. An Error is thrown, `'hang'` never ends, a function is called,
 * and any other value is returned. `after` and `heeding` can wrap each of these.
 */
export type Beat = unknown;

/** One call of the scripted operation. */
export interface Call {
  /** When the call was made, on the scale of `Clock.now`. */
  readonly at: number;
  /** The `attempt` in the context that the call got; without a context, the number of the call. */
  readonly attempt: number;
  /** Whether the signal of this attempt has aborted by now. */
  readonly aborted: boolean;
}

/** An operation that follows a script and records its calls. */
export interface Scripted<T> {
  (context?: ScriptedContext): Promise<T>;
  readonly calls: readonly Call[];
  /** The `attempt` number of each call. */
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
 * Makes an operation that follows a script: each call plays the next item, and further calls repeat the last
 * item. A call ignores its abort signal unless the item is wrapped in `heeding`.
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
      // This is a getter, because reading `context.signal` creates the signal.
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

/** Makes a script item that waits for this time on the clock, and then plays the item `beat`. */
export function after<const B>(duration: Duration, beat: B): Delayed<B> {
  return new Delayed(durationMs(duration), beat);
}

/**
 * Makes a script item that plays the item `beat`. If the attempt's signal aborts meanwhile, the call throws
 * the reason of the signal, as `fetch` does.
 */
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
