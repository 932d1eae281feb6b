import { anything, duration, group } from '../fields.ts';
import { definePart } from '../policy/part.ts';
import { OptionsError } from '../report/errors.ts';
import type { Story } from '../report/story.ts';
import { deadlineOf, withDeadline } from '../run/deadline.ts';
import { addLayer, failure } from './layer.ts';

/** What is given instead of a failure: a value, or a function of the failure that makes one or throws. */
export type Fallback = unknown | ((failure: FailedWork) => unknown);

/** `error` is what was thrown; `value`, where nothing was, is what was returned and judged a failure. */
export interface FailedWork {
  readonly error: unknown;
  readonly value: unknown;
  readonly story: Story;
  /** Aborts when the caller leaves or patience ends: nobody wants the answer any more. */
  readonly signal: AbortSignal;
  /** Ms that are left for an answer. */
  readonly patienceLeft: number;
}

/**
 * Answers with something else when the work has failed: the first of the chain that does not throw. Functions have what
 * is left of patience; after that the caller gets the real failure.
 */
export const fallback = definePart({
  key: 'fallback',
  fields: {
    fallback: group({
      /** One value or function, or a chain of them. */
      to: anything<Fallback>(),
      /** Kept back from the customer's patience for the functions of the chain. */
      reserve: duration('0ms'),
    }),
  },
  create({ fallback: settings }, plan, { fallback: said }) {
    if (!settings) return;
    // From the document itself, where null is a value like any other.
    const { to } = Object(said) as { to?: Fallback };
    const chain: readonly Fallback[] = [to].flat();
    // An empty list is meant as the answer, and would be a chain of none: it is said as [[]].
    if (to === undefined || !chain.length)
      throw new OptionsError('fallback.to', to, 'a value, a function or a list of them');
    addLayer(plan, {
      order: 2,
      async around(_operation, options, next) {
        const limits = deadlineOf(plan, options);
        const { startedAt, endsAt } = limits;
        const patience = Math.max(0, endsAt - startedAt - settings.reserve);
        const failed = await next(settings.reserve > 0 ? { ...options, patience } : options);
        // Whoever has left wants no answer at all.
        if (failed.ok || failed.story.stop === 'cancelled') return failed;
        const leaving = new AbortController();
        const { signal } = leaving;
        return withDeadline(answer(), plan.clock, limits, (stop, reason) => {
          leaving.abort(reason);
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
              // The next of the chain is asked; if none answers, the real failure is what the caller gets.
              if (signal.aborted) break;
            }
          }
          return failed;
        }
      },
    });
  },
});
