import { anything, duration, group } from '../fields.ts';
import { definePart } from '../policy/part.ts';
import { OptionsError } from '../report/errors.ts';
import type { Story } from '../report/story.ts';
import { deadlineOf, withDeadline } from '../run/deadline.ts';
import { addLayer, failure } from './layer.ts';

/**
 * The result that replaces a failure: a value, or a function that receives the failure and returns a value or throws.
 */
export type Fallback = unknown | ((failure: FailedWork) => unknown);

/** `error` is what was thrown; if nothing was thrown, `value` is the returned value that was classified as a failure. */
export interface FailedWork {
  readonly error: unknown;
  readonly value: unknown;
  readonly story: Story;
  /** Aborts when the run is cancelled or patience ends. */
  readonly signal: AbortSignal;
  /** Ms until patience ends. */
  readonly patienceLeft: number;
}

/**
 * Returns another result when the work has failed: the result of the first item in the chain that does not throw. The
 * functions may use the patience that is left. When patience ends, the caller gets the real failure.
 */
export const fallback = definePart({
  key: 'fallback',
  fields: {
    fallback: group({
      /** One value or function, or a chain of them. */
      to: anything<Fallback>(),
      /** How much of the patience (the time limit of the work) is reserved for the functions of the chain. */
      reserve: duration('0ms'),
    }),
  },
  create({ fallback: settings }, plan, { fallback: input }) {
    if (!settings) return;
    // `to` is read from the document itself, because the settings cannot tell null from absent.
    const { to } = Object(input) as { to?: Fallback };
    const chain: readonly Fallback[] = [to].flat();
    // An empty list would be a chain without items. To return an empty list as the result, write [[]].
    if (to === undefined || !chain.length)
      throw new OptionsError('fallback.to', to, 'a value, a function or a list of them');
    addLayer(plan, {
      order: 2,
      async around(_operation, options, next) {
        const limits = deadlineOf(plan, options);
        const { startedAt, endsAt } = limits;
        const patience = Math.max(0, endsAt - startedAt - settings.reserve);
        const failed = await next(settings.reserve > 0 ? { ...options, patience } : options);
        // A cancelled run needs no result.
        if (failed.ok || failed.story.stop === 'cancelled') return failed;
        const controller = new AbortController();
        const { signal } = controller;
        return withDeadline(answer(), plan.clock, limits, (stop, reason) => {
          controller.abort(reason);
          return stop === 'cancelled' ? failure(reason, { ...failed.story, stop }) : failed;
        });

        async function answer(): Promise<typeof failed> {
          const { error, value: returned, story } = failed as typeof failed & { ok: false };
          const patienceLeft = Math.max(0, endsAt - plan.clock.now());
          const work: FailedWork = { error, value: returned, story, signal, patienceLeft };
          for (const each of chain) {
            try {
              const value = typeof each === 'function' ? await each(work) : each;
              if (!signal.aborted) {
                plan.counters.fallbacks++;
                plan.reporter?.served(options.target, plan.clock.now(), 'fallback');
              }
              return { ok: true, value, story, from: 'fallback' };
            } catch {
              // Try the next item of the chain. If all of them throw, the caller gets the real failure.
              if (signal.aborted) break;
            }
          }
          return failed;
        }
      },
    });
  },
});
