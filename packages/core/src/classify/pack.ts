import type { Judgement, OutcomeClass, Pack } from '../decide/outcome.ts';

/** An object of which nothing is known: any property may be anything, or throw when it is read. */
export type Stranger = Readonly<Record<string, unknown>>;

/** How many errors are looked at inside one: a bound on depth, width and circles alike. */
export const lookedAtMax = 16;

/**
 * A pack that judges an error and what is inside it one by one, the outermost first, and with `values` what was returned
 * as well. `judge` may throw on hostile objects: then the pack declines.
 */
export function definePack<const Name extends string>(
  pack: Name,
  judge: (
    thing: Stranger,
    epochMs: () => number,
    all: readonly Stranger[],
    ok: boolean,
  ) => Judgement | OutcomeClass | undefined,
  values = false,
  byDefault = false,
): Pack<Name> {
  return {
    pack,
    values,
    byDefault,
    classify(outcome, epochMs) {
      try {
        if (outcome.ok)
          return values && isObject(outcome.value) ? judge(outcome.value, epochMs, [], true) : undefined;
        const all = errorsIn(outcome.error);
        for (const error of all) {
          const judged = judge(error, epochMs, all, false);
          if (judged) return judged;
        }
      } catch {
        // Not an object that any of our packs could know.
      }
      return undefined;
    },
  };
}

/** `error`, then what is inside it: the errors of an AggregateError, and causes. */
function errorsIn(error: unknown): Stranger[] {
  const found: Stranger[] = [];
  const add = (each: unknown) => {
    if (isObject(each) && found.length < lookedAtMax && !found.includes(each)) found.push(each);
  };
  add(error);
  // A list that grows while it is walked.
  for (const { errors, cause } of found) {
    if (Array.isArray(errors)) errors.slice(0, lookedAtMax).forEach(add);
    add(cause);
  }
  return found;
}

export function isObject(value: unknown): value is Stranger {
  return typeof value === 'object' && value !== null;
}
