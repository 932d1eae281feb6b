import { count, duration, group, list } from '../fields.ts';
import { type Candidate, Choice, TargetHealth } from '../machines/choice.ts';
import type { Target } from '../machines/target.ts';
import { definePart } from '../policy/part.ts';
import { addGuards, perTarget } from './per-target.ts';
import { rangeOf } from './range.ts';

type Member = Target & Candidate;

/**
 * Chooses among the `targets` of a run, prefers another one for a retry, and ejects (stops choosing) outliers for a
 * while.
 */
export const choice = /* @__PURE__ */ definePart({
  key: 'choice',
  fields: {
    choice: group(
      {
        /** After this many failures in a row a target is ejected, unless most of the others are failing too. */
        consecutive: count(5, 1),
        /** How long the first ejection lasts, and how long an ejection may last at most. */
        ejectFor: list(duration(undefined, undefined, 1), ['10s', '5m']),
      },
      true,
    ),
  },
  create({ choice: settings }, plan) {
    if (!settings) return;
    const { consecutive, ejectFor } = settings;
    const ejectForMs = rangeOf('choice.ejectFor', ejectFor);
    const chooser = new Choice<Member>({ consecutive, ejectForMs }, plan.random);
    addGuards(plan);
    perTarget(plan, 'member', () => {});
    plan.choose = (work, now, refused) => {
      const all = work.options?.targets?.map((name) => candidate(plan.targets!.get(name, now))) ?? [];
      return chooser.choose(all, now, work.guards?.tried, refused);
    };
  },
});

function candidate(target: Target): Member {
  target.health ??= new TargetHealth();
  return target as Member;
}
