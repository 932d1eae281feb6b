import type { Judgement, OutcomeClass, Pack } from '../decide/outcome.ts';
import { causesOf, type UnknownObject } from './causes-of.ts';
import { isObject } from './is-object.ts';

/**
 * Makes a pack (a named classifier). `judge` is called with the error, then with each cause, until it returns
 * a class. If `judge` throws, the pack does not classify the error. With `values`, the pack also judges
 * returned values.
 */
export function definePack<const Name extends string>(
  pack: Name,
  judge: (
    thing: UnknownObject,
    epochMs: () => number,
    all: readonly UnknownObject[],
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
        const all = causesOf(outcome.error);
        for (const error of all) {
          const judged = judge(error, epochMs, all, false);
          if (judged) return judged;
        }
      } catch {
        // Reading a property of the error threw, so the pack does not classify it.
      }
      return undefined;
    },
  };
}
