import type { Classifier, Judgement, OutcomeClass, Pack } from '../outcome.ts';

/** An object of which nothing is known: any property may be anything, or throw when it is read. */
export type Stranger = Readonly<Record<string, unknown>>;

/** How many errors are looked at inside one: a bound on depth, width and cycles alike. */
export const lookedAtMax = 16;

/** A pack that judges errors one by one. `judge` may throw on hostile objects: that declines. */
export function errorPack(
  pack: string,
  judge: (error: Stranger, epochMs: () => number) => Judgement | OutcomeClass | undefined,
): Pack {
  return {
    pack,
    classify: guarded((outcome, epochMs) => {
      if (outcome.ok) return undefined;
      for (const error of errorsIn(outcome.error)) {
        const judged = judge(error, epochMs);
        if (judged !== undefined) return judged;
      }
      return undefined;
    }),
  };
}

/** A classifier that declines where it would throw. */
export function guarded(classify: Classifier): Classifier {
  return (outcome, epochMs) => {
    try {
      return classify(outcome, epochMs);
    } catch {
      return undefined;
    }
  };
}

/** `error`, then what is inside it: the errors of an AggregateError, and causes. */
export function errorsIn(error: unknown): Stranger[] {
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
