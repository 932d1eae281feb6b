import { anything, duration, type FieldsOf, group } from '../fields.ts';
import { fallback as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { FallbackFields } from '../policy/policy-spec.ts';
import { OptionsError } from '../report/errors.ts';
import type { Story } from '../report/story.ts';
import { deadlineOf, withDeadline } from '../run/deadline.ts';
import { addLayer, failure } from './layer.ts';

/** The result that replaces a failure: a value, or a function that returns a value or throws. */
export type Fallback = unknown | ((failure: FailedWork) => unknown);

/**
 * The failure that a fallback function gets. `error` is the error that was thrown. If nothing was thrown,
 * `value` is the returned value that counts as a failure.
 */
export interface FailedWork {
  readonly error: unknown;
  readonly value: unknown;
  readonly story: Story;
  /** Aborts when the run is cancelled or when its time limit ends. */
  readonly signal: AbortSignal;
  /** Ms until the time limit of the run ends. */
  readonly patienceLeft: number;
}

const fields = {
  fallback: group({
    to: anything<Fallback>(),
    reserve: duration(defaults.reserve),
  }),
} satisfies FieldsOf<FallbackFields>;

/**
 * The part `fallback`: returns another result when the work has failed. The chain is tried in order, and the
 * first item that does not throw gives the result. If the time limit of the run ends before, the caller gets
 * the original failure.
 */
export const fallback = definePart<typeof fields, FallbackFields>({
  key: 'fallback',
  fields,
  create({ fallback: settings }, plan, { fallback: input }) {
    if (!settings) return;
    // `to` is read from the document: in `settings`, a `to` of null cannot be distinguished from a missing
    // one.
    const { to } = Object(input) as { to?: Fallback };
    const chain: readonly Fallback[] = [to].flat();
    // An empty list is refused, because it contains no item to try. To return an empty list, write `[[]]`.
    if (to === undefined || !chain.length)
      throw new OptionsError('fallback.to', to, 'a value, a function or a list of them');
    addLayer(plan, {
      order: 2,
      async around(_operation, options, next) {
        const limits = deadlineOf(plan, options);
        const { startedAt, endsAt } = limits;
        const patience = Math.max(0, endsAt - startedAt - settings.reserve);
        const failed = await next(settings.reserve > 0 ? { ...options, patience } : options);
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
              // This item threw, so the next item is tried. If all items throw, the caller gets the original
              // failure.
              if (signal.aborted) break;
            }
          }
          return failed;
        }
      },
    });
  },
});
