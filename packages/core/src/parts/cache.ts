import { Alarm, type Clock } from '../clock.ts';
import { readDuration } from '../duration.ts';
import { ExpiredError } from '../errors.ts';
import { count, duration, group } from '../fields.ts';
import { addLayer, type Next } from '../layer.ts';
import { leaveWith, stay } from '../leaving.ts';
import { definePart } from '../part.ts';
import type { Operation, RunOptions } from '../plan.ts';
import type { Ending } from '../shell.ts';
import type { Story } from '../story.ts';
import { detached, surroundings } from '../surroundings.ts';
import type { StopReason } from '../verdict.ts';

interface Entry {
  readonly value: unknown;
  readonly freshUntil: number;
  readonly staleUntil: number;
}

/**
 * Remembers results by `cacheKey`: fresh ones spare the call, stale ones replace a failure, and calls for one key
 * at one time share one flight. Fallback values are outside of it and never cached.
 */
export const cache = definePart({
  key: 'cache',
  fields: {
    cache: group({
      fresh: duration('1s'),
      /** For so long after it was fresh, a value is served rather than a failure. */
      staleIfError: duration('0ms'),
      entriesMax: count(1000, 1),
    }),
  },
  create({ cache: settings }, plan) {
    if (!settings) return;
    const { clock, name } = plan;
    const entries = new Map<string, Entry>();
    const flights = new Map<string, Promise<Ending<unknown>>>();

    function find(key: string): Entry | undefined {
      const entry = entries.get(key);
      if (entry) {
        // Put last again: the first of the map is always the one used least recently.
        entries.delete(key);
        entries.set(key, entry);
      }
      return entry;
    }

    function keep(key: string, value: unknown): void {
      const freshUntil = clock.now() + settings!.fresh;
      entries.delete(key);
      entries.set(key, { value, freshUntil, staleUntil: freshUntil + settings!.staleIfError });
      if (entries.size > settings!.entriesMax) entries.delete(entries.keys().next().value as string);
    }

    function fly<T>(key: string, options: RunOptions, next: Next<T>): Promise<Ending<T>> {
      // The flight is everybody's: neither the patience nor the leaving of the one who starts it may cut it short.
      const flight = detached(() => next({ ...options, signal: undefined, patience: undefined })).then(
        (ending) => {
          flights.delete(key);
          if (ending.ok) keep(key, ending.value);
          return ending;
        },
      );
      flights.set(key, flight);
      return flight;
    }

    addLayer(plan, {
      order: 2,
      async around<T>(_operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>> {
        const { cacheKey: key } = options;
        if (key === undefined) return next(options);
        const entry = find(key);
        const cached = (): Ending<T> => ({
          ok: true,
          value: entry?.value as T,
          story: emptyStory(name),
          from: 'cache',
        });
        if (entry && clock.now() < entry.freshUntil) return cached();
        const flight = (flights.get(key) as Promise<Ending<T>> | undefined) ?? fly(key, options, next);
        const ending = await patiently(flight, clock, name, options, plan.patienceMs);
        return !ending.ok && entry && clock.now() < entry.staleUntil ? cached() : ending;
      },
    });
  },
});

function emptyStory(policy: string | undefined, stop?: StopReason, tookMs = 0): Story {
  return { policy, attempts: 0, tookMs, stop, log: [], inner: undefined };
}

/** The ending of a shared flight, unless this caller leaves or its own patience ends before. */
function patiently<T>(
  flight: Promise<Ending<T>>,
  clock: Clock,
  policy: string | undefined,
  options: RunOptions,
  defaultMs: number,
): Promise<Ending<T>> {
  const around = surroundings();
  const signal = options.signal ?? around?.signal;
  const startedAt = clock.now();
  const patienceMs = readDuration(options.patience) ?? defaultMs;
  const endsAt = Math.min(startedAt + patienceMs, around?.patienceEndsAt ?? Infinity);
  return new Promise((resolve, reject) => {
    class Patience extends Alarm {
      ring(now: number): void {
        const tookMs = now - startedAt;
        const error = new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', tookMs, undefined);
        end(failure(error, 'patience_too_short'));
      }

      leave(reason: unknown): void {
        end(failure(reason, 'cancelled'));
      }
    }
    const patience = new Patience();
    const failure = (error: unknown, stop: StopReason): Ending<T> => {
      const story = emptyStory(policy, stop, clock.now() - startedAt);
      return { ok: false, thrown: true, error, value: undefined, story };
    };
    const end = (ending: Ending<T>) => {
      clock.clear(patience);
      if (signal) stay(signal, patience);
      resolve(ending);
    };
    if (signal?.aborted) patience.leave(signal.reason);
    else {
      if (signal) leaveWith(signal, patience);
      if (endsAt < Infinity) clock.set(patience, endsAt);
      flight.then(end, reject);
    }
  });
}
