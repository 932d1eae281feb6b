import type { StopReason } from '../decide/verdict.ts';
import { count, duration, type FieldsOf, group } from '../fields.ts';
import { cache as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { CacheFields } from '../policy/policy-spec.ts';
import { ExpiredError } from '../report/errors.ts';
import type { Story } from '../report/story.ts';
import { withoutAmbient } from '../run/ambient-context.ts';
import { deadlineOf, withDeadline } from '../run/deadline.ts';
import type { Ending } from '../run/promise-driver.ts';
import type { Operation, RunOptions, Wait } from '../run/run-options.ts';
import { addLayer, failure, type Next } from './layer.ts';

/** The cached results, and the calls in flight that several runs share. Both are found by cache key. */
export interface Results {
  readonly entries: Map<string, Entry>;
  readonly flights: Map<string, Promise<Ending<unknown>>>;
}

interface Entry {
  readonly value: unknown;
  readonly since: number;
}

const fields = {
  cache: group({
    fresh: duration(defaults.fresh),
    staleIfError: duration(defaults.staleIfError),
    entriesMax: count(defaults.entriesMax, 1),
  }),
} satisfies FieldsOf<CacheFields>;

/**
 * The part `cache`: caches results by `cacheKey`. A stale result can replace a failure, and concurrent runs
 * with the same key share one call. Results of fallbacks are not cached.
 */
export const cache = definePart<typeof fields, CacheFields>({
  key: 'cache',
  fields,
  create({ cache: settings }, plan) {
    if (!settings) return;
    const { fresh, staleIfError, entriesMax } = settings;
    const { clock, name } = plan;
    plan.results = { entries: new Map(), flights: new Map() };
    // `update` keeps the cached results. With an empty cache, all processes would call the origin at the same
    // time after an update.
    plan.carryOver.push((next) => {
      if (next.results) next.results = plan.results;
    });

    function find(key: string): Entry | undefined {
      const { entries } = plan.results!;
      const entry = entries.get(key);
      if (entry) {
        entries.delete(key);
        entries.set(key, entry);
      }
      return entry;
    }

    function store(key: string, value: unknown): void {
      const { entries } = plan.results!;
      entries.delete(key);
      entries.set(key, { value, since: clock.now() });
      for (const oldest of entries.keys()) {
        if (entries.size <= entriesMax) break;
        entries.delete(oldest);
      }
    }

    /**
     * Starts a call that all runs with the same `cacheKey` share. If the user's `onWait` throws, only the run
     * that started the call is cancelled, and the shared call continues.
     */
    function startFlight<T>(
      key: string,
      options: RunOptions,
      next: Next<T>,
      cancelled: (reason: unknown) => Ending<T>,
    ): Promise<Ending<T>> {
      const { flights } = plan.results!;
      return new Promise((resolve, reject) => {
        const onWait = (wait: Wait) => {
          try {
            options.onWait?.(wait);
          } catch (error) {
            resolve(cancelled(error));
          }
        };
        // Other runs share this call. So the time limit and the signal of the first run must not end it.
        const flight = withoutAmbient(() =>
          next({ ...options, signal: undefined, patience: undefined, onWait }),
        )
          .then((ending) => {
            if (ending.ok) store(key, ending.value);
            return ending;
          })
          .finally(() => flights.delete(key));
        flights.set(key, flight);
        flight.then(resolve, reject);
      });
    }

    addLayer(plan, {
      order: 3,
      async around<T>(_operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>> {
        const { cacheKey: key } = options;
        // Without a key (null or undefined), the cache is not used.
        if (key == null) return next(options);
        const limits = deadlineOf(plan, options);
        const { startedAt, signal } = limits;
        const entry = find(key);
        const cached = (how: 'fresh' | 'stale'): Ending<T> => {
          const now = clock.now();
          plan.reporter?.served(options.target, now, how);
          const story = storyOf(name, undefined, now - startedAt);
          return { ok: true, value: entry?.value as T, story, from: 'cache' };
        };
        if (entry && startedAt < entry.since + fresh) return cached('fresh');
        // A run that is already cancelled must not start a shared call.
        if (signal?.aborted) return next(options);
        const end = (stop: StopReason, reason: unknown): Ending<T> => {
          const tookMs = clock.now() - startedAt;
          const error =
            stop === 'cancelled'
              ? reason
              : new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', limits.endsAt - startedAt, undefined);
          return failure(error, storyOf(name, stop, tookMs));
        };
        const flight =
          (plan.results!.flights.get(key) as Promise<Ending<T>> | undefined) ??
          startFlight(key, options, next, (reason) => end('cancelled', reason));
        const ending = await withDeadline(flight, clock, limits, end);
        if (ending.ok || ending.story.stop === 'cancelled') return ending;
        return entry && clock.now() < entry.since + fresh + staleIfError ? cached('stale') : ending;
      },
    });
  },
});

function storyOf(policy: string | undefined, stop: StopReason | undefined, tookMs: number): Story {
  return { policy, attempts: 0, tookMs, stop, log: [], inner: undefined };
}
