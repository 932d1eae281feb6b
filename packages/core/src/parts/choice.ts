import { count, duration, type FieldsOf, group, list } from '../fields.ts';
import { type Candidate, Choice, TargetHealth } from '../machines/choice.ts';
import type { Target } from '../machines/target.ts';
import { choice as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { ChoiceFields } from '../policy/policy-spec.ts';
import { addGuards, perTarget } from './per-target.ts';
import { rangeOf } from './range.ts';

type Member = Target & Candidate;

const fields = {
  choice: group(
    {
      consecutive: count(defaults.consecutive, 1),
      ejectFor: list(duration(undefined, undefined, 1), defaults.ejectFor),
    },
    true,
  ),
} satisfies FieldsOf<ChoiceFields>;

/**
 * The part `choice`: chooses one of the `targets` of a run for each attempt. A retry prefers another target.
 * A target that fails more than the others is ejected (not chosen) for a while.
 */
export const choice = /* @__PURE__ */ definePart<typeof fields, ChoiceFields>({
  key: 'choice',
  fields,
  create({ choice: settings }, plan, spec) {
    if (!settings) return;
    const { consecutive, ejectFor } = settings;
    const ejectForMs = rangeOf(
      'choice.ejectFor',
      ejectFor,
      (Object(spec.choice) as { ejectFor?: unknown }).ejectFor,
    );
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
