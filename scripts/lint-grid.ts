import { harmsOf, type RunPool } from '@holdfast/simulator';
import type { PolicySpec } from 'holdfast';
import { lint } from 'holdfast/lint';

/** A policy of the grid, with what the linter says of it and what it did. */
export interface Judged {
  readonly spec: PolicySpec;
  /** Rules of `lint` that it breaks; advice is not counted. */
  readonly rules: readonly string[];
  readonly harms: readonly string[];
}

const axes: readonly (readonly PolicySpec[])[] = [
  [1, 2, 3, 4, 8].map((attempts) => ({ attempts })),
  [{ backoff: false }, { backoff: { jitter: 'none' } }, { backoff: { jitter: 'equal' } }, {}],
  [{ budget: false }, {}, { budget: { ratio: 0.3 } }, { budget: { ratio: 0.8 } }],
  [{ breaker: false }, {}, { breaker: { minimum: 1 } }, { breaker: { openFor: '20s' } }],
  [{}, { attemptTimeout: '1s' }],
  [{}, { patience: 'unlimited' }],
];

/** Every combination: 1,280 policies. */
export function policyGrid(): PolicySpec[] {
  return axes.reduce<PolicySpec[]>(
    (all, axis) => all.flatMap((each) => axis.map((more) => ({ ...each, ...more }))),
    [{}],
  );
}

export async function judge(specs: readonly PolicySpec[], pool: RunPool): Promise<Judged[]> {
  const harms = await harmsOf(specs, pool);
  return specs.map((spec, index) => ({
    spec,
    rules: lint(spec)
      .filter(({ severity }) => severity !== 'advice')
      .map(({ rule }) => rule),
    harms: harms[index]!,
  }));
}

/** Whether linter and simulator say the same of a policy: that it is dangerous, or that it is not. */
export function agree({ rules, harms }: Judged): boolean {
  return rules.length > 0 === harms.length > 0;
}
