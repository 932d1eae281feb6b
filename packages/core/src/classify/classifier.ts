import type { Classifier, Judgement, Outcome, Pack } from '../decide/outcome.ts';
import type { Plan } from '../policy/plan.ts';
import { OptionsError } from '../report/errors.ts';
import { markOf } from './marks.ts';

/** An item of `retryOn`: the name of a pack (a named classifier), a pack, or a classifier function. */
export type RetryOn<Name extends string = string> = Name | Pack | Classifier;

/**
 * Returns the packs (named classifiers) of a policy, in the order in which they are asked. Packs in `retryOn`
 * come before the default packs, and `retryOnly` replaces the default packs. `any` is last, because it
 * accepts every error.
 */
export function packsOf(
  { retryOn = [], retryOnly }: { retryOn?: readonly RetryOn[]; retryOnly?: readonly RetryOn[] },
  packs: readonly Pack[],
): Pack[] {
  const field = retryOnly ? 'retryOnly' : 'retryOn';
  const named = (retryOnly ?? retryOn).map((choice, index): Pack => {
    // The policy would call a class as a function, and that call would throw for every error.
    if (typeof choice === 'function' && !/^class\b/.test(`${choice}`))
      return { pack: '', classify: choice, values: true };
    const found = typeof choice === 'string' ? packs.find(({ pack }) => pack === choice) : (choice as Pack);
    if (typeof found?.classify === 'function') return found;
    const names = packs.map(({ pack }) => pack);
    throw new OptionsError(
      `${field}[${index}]`,
      choice,
      `${names.join(', ')}, a pack or a function: (outcome) => outcome.error instanceof Busy ? 'transient' : undefined`,
    );
  });
  const usual = retryOnly ? [] : packs.filter(({ byDefault }) => byDefault);
  const chosen = [...new Set([...named, ...usual])];
  const isAny = ({ pack }: Pack) => pack === 'any';
  return [...chosen.filter((each) => !isAny(each)), ...chosen.filter(isAny)];
}

/**
 * Combines packs (named classifiers) into one classifier: the first pack that returns a class decides.
 *
 * Marks such as `permanent(error)` come first, then `neverOn`, then the packs. An error that no pack knows is
 * not retried. If a pack throws, the work is not retried either, and listeners get a notice.
 */
export function combine(
  chosen: readonly Pack[],
  neverOn: readonly (abstract new (...args: never[]) => unknown)[],
): { classify: Classifier; judgesValues: Plan['judgesValues'] } {
  const forValues = chosen.filter(({ values }) => values);
  const hasFunction = chosen.some(({ pack }) => pack === '');

  return {
    judgesValues: hasFunction ? 2 : forValues.length > 0 ? 1 : 0,
    classify(outcome, epochMs) {
      try {
        if (!outcome.ok) {
          const marked = markOf(outcome.error);
          if (marked) return marked;
          if (neverOn.some((type) => outcome.error instanceof type)) return 'fatal';
        }
        for (const pack of outcome.ok ? forValues : chosen) {
          const judged = pack.classify(outcome, epochMs);
          if (judged) return judged;
        }
      } catch (error) {
        return misjudged(outcome, `threw ${messageOf(error)}`);
      }
      return outcome.ok ? 'ok' : unknownError;
    },
  };
}

const unknownError: Judgement = { class: 'fatal', unknown: true };

/**
 * Returns the class of an outcome whose classifier gave no class. The outcome is not retried, and
 * `unreadableHint` tells listeners and the story what the classifier `did`.
 */
export function misjudged({ ok }: Outcome, did: string): Judgement {
  return { class: ok ? 'ok' : 'fatal', unreadableHint: `a classifier ${did}` };
}

export function messageOf(error: unknown): string {
  try {
    return `${(error as Error).message ?? ''}`;
  } catch {
    return ''; // null, undefined, or an object whose message cannot be read
  }
}
