import type { Judgement, OutcomeClass, Pack } from '../decide/outcome.ts';
import { causesOf, type UnknownObject } from './causes-of.ts';
import { isObject } from './is-object.ts';

/**
 * A pack that judges an error and what is inside it one by one, the outermost first, and with `values` what was returned
 * as well. `judge` may throw on hostile objects: then the pack declines.
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
        // Not an object that any of our packs could know.
      }
      return undefined;
    },
  };
}
