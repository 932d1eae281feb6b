import { type Candidate, Choice, Standing } from '../choice.ts';
import { OptionsError } from '../errors.ts';
import { count, duration, group, list } from '../fields.ts';
import { definePart } from '../part.ts';
import type { Target } from '../target.ts';
import { guard, keep } from './keep.ts';

type Member = Target & Candidate;

/** Chooses among the `targets` of a run, prefers another one for a retry, and sends outliers away for a while. */
export const choice = /* @__PURE__ */ definePart({
  key: 'choice',
  fields: {
    choice: group(
      {
        /** Failures in a row after which a target is sent away, if the others do better. */
        consecutive: count(5, 1),
        /** How long it is sent away at first, and at most. */
        ejectFor: list(duration(undefined, undefined, 1), ['10s', '5m']),
      },
      true,
    ),
  },
  create({ choice: settings }, plan) {
    if (!settings) return;
    const [first, most = first] = settings.ejectFor as readonly [number, number?];
    if (settings.ejectFor.length > 2 || !(most >= first)) {
      throw new OptionsError(
        'choice.ejectFor',
        settings.ejectFor,
        'the first and the longest time, in this order',
      );
    }
    const chooser = new Choice<Member>(
      { consecutive: settings.consecutive, ejectForMs: [first, most] },
      plan.random,
    );
    guard(plan);
    keep(plan, 'member', () => {});
    plan.choose = (work, now, refused) => {
      const all = work.options?.targets?.map((name) => candidate(plan.targets!.get(name, now))) ?? [];
      return chooser.choose(all, now, work.tried, refused);
    };
  },
});

function candidate(target: Target): Member {
  target.standing ??= new Standing();
  return target as Member;
}
