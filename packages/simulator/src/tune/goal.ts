import {
  type Assertion,
  type Bound,
  holds,
  missingPartIn,
  parseAssertion,
  type Scenario,
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

/** The assertions that can be measured in a storm: it has the parts that they name. */
export function goalsIn(goal: Goal, scenario: Scenario): readonly Assertion[] {
  return goal.assertions.filter(
    (each) => isAbout(each, scenario) && missingPartIn(scenario, each.bound) === undefined,
  );
}

/** An assertion that no storm can measure would count as reached: throws an `OptionsError`. */
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

/** An assertion with a share of failures applies to storms with such a service only. */
function isAbout({ failing }: Assertion, { id }: Scenario): boolean {
  return failing === undefined || id === `failing-${failing}`;
}

/** The patience that a goal implies: work that must be done within a time need not be waited for longer. */
export function patienceFor({ assertions }: Goal): number | undefined {
  const limits = assertions
    .filter(({ bound, relation }) => /^p\d/.test(bound.metric) && relation.startsWith('<'))
    .map(({ limit }) => 1000 * limit);
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

/** Figures of every storm besides the goal: of policies that reach the goal, the one with less load is better. */
export const kindness: readonly Bound[] = ['multiplication', 'success', 'p99'].map(
  (metric) => parseAssertion(`${metric} >= 0`).bound,
);

/** The distance of something that never happens. */
const WORST = 10;

/** The margin: a goal that is only just reached would be missed in the next storm. */
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
