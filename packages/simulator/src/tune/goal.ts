import {
  type Assertion,
  type Bound,
  holds,
  parseAssertion,
  type Scenario,
  strangerIn,
} from '@holdfast/config';
import { OptionsError } from 'holdfast';

/** What a policy shall reach, in which storms. */
export interface Goal {
  readonly assertions: readonly Assertion[];
}

/** Reads `multiplication <= 1.2, success >= 99.5% at 5% failures, p99 <= 2s`. */
export function parseGoal(text: string, path = 'goal'): Goal {
  return {
    assertions: text.split(',').map((each, index) => parseAssertion(each, `${path}, part ${index + 1}`)),
  };
}

/** The assertions that are about a storm, and speak of nobody whom it does not have. */
export function goalsIn(goal: Goal, scenario: Scenario): readonly Assertion[] {
  return goal.assertions.filter(
    (each) => isAbout(each, scenario) && strangerIn(scenario, each.bound) === undefined,
  );
}

/** What no storm could be measured by would count as reached. Throws an `OptionsError`. */
export function mustBeMeasured({ assertions }: Goal, storms: readonly Scenario[]): void {
  for (const assertion of assertions) {
    const strangers = storms
      .filter((storm) => isAbout(assertion, storm))
      .map((storm) => strangerIn(storm, assertion.bound));
    if (strangers.includes(undefined)) continue;
    throw new OptionsError(
      'goal',
      assertion.text,
      `what a storm has (${strangers[0] ?? 'no storm fails so'})`,
    );
  }
}

/** One that names a share of failures is about a service that fails so. */
function isAbout({ failing }: Assertion, { id }: Scenario): boolean {
  return failing === undefined || id === `failing-${failing}`;
}

/** Who must be done in so long need not be waited for any longer: the patience that a goal suggests. */
export function patienceFor({ assertions }: Goal): number | undefined {
  const limits = assertions
    .filter(({ bound, relation }) => /^p\d/.test(bound.metric) && relation.startsWith('<'))
    .map(({ limit }) => 1000 * limit);
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

/** What every storm is measured by, besides the goal: between policies that reach it, the kinder one is better. */
export const kindness: readonly Bound[] = ['multiplication', 'success', 'p99'].map(
  (metric) => parseAssertion(`${metric} >= 0`).bound,
);

/** Far enough to lose: what never happens is so many times too late. */
const WORST = 10;

/** A goal that is only just reached is missed in the next storm. */
const MARGIN = 0.85;

/**
 * How far figures are from the goal: 0 where all is reached with something to spare, 1 where something is twice what it may
 * be. Within the margin it counts a tenth.
 */
export function missedBy(assertion: Assertion, figure: number): number {
  return distance(assertion, figure, 1) + 0.1 * distance(assertion, figure, MARGIN);
}

function distance(assertion: Assertion, figure: number, margin: number): number {
  const { relation, limit } = assertion;
  if (margin === 1 && holds(assertion, figure)) return 0;
  const isLower = relation === '>' || relation === '>=';
  const isShare = assertion.bound.metric === 'success';
  if (!Number.isFinite(figure)) return WORST;
  // Of shares near one, what is missing counts: 98 % is four times as bad as 99.5 %.
  const [wanted, got] = isShare ? [1 - limit, 1 - figure] : isLower ? [figure, limit] : [limit, figure];
  return Math.min(WORST, Math.log2(1 + Math.max(0, got / Math.max(margin * wanted, 1e-6) - 1)));
}

/** A small number that is smaller for a policy that helps more and loads less. */
export function unkindness([multiplication = 1, success = 0, p99 = 60]: readonly number[]): number {
  const seconds = Number.isFinite(p99) ? p99 : 60;
  return 0.1 * Math.max(0, multiplication - 1) + 0.5 * (1 - (success || 0)) + 0.01 * Math.log2(1 + seconds);
}
