import type { Judgement, OutcomeClass, Pack } from '../decide/outcome.ts';
import { causesOf, type UnknownObject } from './causes-of.ts';
import { isObject } from './is-object.ts';

/**
 * Makes a pack (a named classifier) that judges an error and the errors inside it one by one, the outermost first. With
 * `values: true` it judges returned values too. When `judge` throws, as getters of unknown objects may, the pack
 * returns undefined.
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
        // An object that throws when it is read is not an error that the pack knows.
      }
      return undefined;
    },
  };
}
