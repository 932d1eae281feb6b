import {
  type Assertion,
  type Bound,
  holds,
  missingPartIn,
  parseAssertion,
  type Scenario,
} from '@holdfast/config';
import { OptionsError } from 'holdfast';

/** The assertions that a tuned policy must meet. */
export interface Goal {
  readonly assertions: readonly Assertion[];
}

/** Parses a goal such as `multiplication <= 1.2, success >= 99.5% at 5% failures, p99 <= 2s`. */
export function parseGoal(text: string, path = 'goal'): Goal {
  return {
    assertions: text.split(',').map((each, index) => parseAssertion(each, `${path}, part ${index + 1}`)),
  };
}

/**
 * Returns the assertions that a scenario can measure: it must have the clients and services that they name.
 */
export function goalsIn(goal: Goal, scenario: Scenario): readonly Assertion[] {
  return goal.assertions.filter(
    (each) => isAbout(each, scenario) && missingPartIn(scenario, each.bound) === undefined,
  );
}

/** Throws if no scenario can measure an assertion. Without this check, the assertion would count as met. */
export function assertGoalMeasurable({ assertions }: Goal, storms: readonly Scenario[]): void {
  for (const assertion of assertions) {
    const strangers = storms
      .filter((storm) => isAbout(assertion, storm))
      .map((storm) => missingPartIn(storm, assertion.bound));
    if (strangers.includes(undefined)) continue;
    throw new OptionsError(
      'goal',
      assertion.text,
      `what a storm has (${strangers[0] ?? 'no storm fails so'})`,
    );
  }
}

/** An assertion such as `at 5% failures` applies only to the `failingStorm` with that share. */
function isAbout({ failing }: Assertion, { id }: Scenario): boolean {
  return failing === undefined || id === `failing-${failing}`;
}

/** The total timeout in ms that a goal implies: its lowest upper limit on a latency percentile. */
export function patienceFor({ assertions }: Goal): number | undefined {
  const limits = assertions
    .filter(({ bound, relation }) => /^p\d/.test(bound.metric) && relation.startsWith('<'))
    .map(({ limit }) => 1000 * limit);
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

/** Among policies that reach the goal, these figures decide which one is better. */
export const kindness: readonly Bound[] = ['multiplication', 'success', 'p99'].map(
  (metric) => parseAssertion(`${metric} >= 0`).bound,
);

/** The largest possible distance from a goal. A figure that is infinite or NaN has this distance. */
const WORST = 10;

/** The search aims at 85 % of a limit. A policy that barely meets it would miss it in other scenarios. */
const MARGIN = 0.85;

/**
 * How far a figure misses its limit: about 1 if it is twice the limit. A figure that meets the limit, but not
 * the margin, counts a tenth.
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
  // Compare the failures of success rates: 98 % success has four times the failures of 99.5 %.
  const [wanted, got] = isShare ? [1 - limit, 1 - figure] : isLower ? [figure, limit] : [limit, figure];
  return Math.min(WORST, Math.log2(1 + Math.max(0, got / Math.max(margin * wanted, 1e-6) - 1)));
}

/** Returns a small penalty. It is lower for less extra load, more successes and a lower p99. */
export function unkindness([multiplication = 1, success = 0, p99 = 60]: readonly number[]): number {
  const seconds = Number.isFinite(p99) ? p99 : 60;
  return 0.1 * Math.max(0, multiplication - 1) + 0.5 * (1 - (success || 0)) + 0.01 * Math.log2(1 + seconds);
}
