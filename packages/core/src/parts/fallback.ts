import { readDuration } from '../duration.ts';
import { anything, duration, group } from '../fields.ts';
import { addLayer } from '../layer.ts';
import { definePart } from '../part.ts';
import type { Story } from '../story.ts';

/** What is given instead of a failure: a value, or a function of the failure that makes one or throws. */
export type Fallback = unknown | ((failure: { error: unknown; story: Story }) => unknown);

/** Answers with something else when the work has failed: the first of the chain that does not throw. */
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
  create({ fallback: settings }, plan) {
    if (!settings) return;
    const chain: readonly Fallback[] = Array.isArray(settings.to) ? settings.to : [settings.to];
    addLayer(plan, {
      order: 1,
      async around(_operation, options, next) {
        const patienceMs = readDuration(options.patience) ?? plan.patienceMs;
        const reserved = settings.reserve > 0 && patienceMs < Infinity;
        const ending = await next(
          reserved ? { ...options, patience: Math.max(0, patienceMs - settings.reserve) } : options,
        );
        // Whoever has left wants no answer at all.
        if (ending.ok || ending.story.stop === 'cancelled') return ending;
        for (const each of chain) {
          try {
            const value = typeof each === 'function' ? await each(ending) : each;
            plan.counters.fallbacks++;
            return { ok: true, value, story: ending.story, from: 'fallback' };
          } catch {
            // The next of the chain is asked; if none answers, the real failure is what the caller gets.
          }
        }
        return ending;
      },
    });
  },
});
