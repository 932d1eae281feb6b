import { sayHints, sayNotRetried, sayRetried } from './explain/classes.ts';
import { type DelayRow, delayTable } from './explain/delays.ts';
import { effectiveSettings, notSet, type Setting } from './explain/effective-settings.ts';
import { formatMs } from './explain/format-duration.ts';
import { type WorstLoad, type WorstTime, worstLoad, worstTime } from './explain/limits.ts';
import { attemptRing, operationRing, type Place } from './explain/rings.ts';
import type { Table } from './fields.ts';
import type { PartSettings } from './policy/part-settings.ts';
import type { Policy } from './policy/policy.ts';

export type { DelayRow, Delays } from './explain/delays.ts';
export type { Setting } from './explain/effective-settings.ts';
export type { Limit, WorstLoad, WorstTime } from './explain/limits.ts';
export { stopSentences } from './explain/stop-sentences.ts';
export { tellStory } from './explain/story-text.ts';

/** One part of a policy, such as the breaker, with its settings and a sentence about what it does. */
export interface ExplainedPlace {
  readonly part: string;
  readonly on: boolean;
  readonly says: string;
  readonly settings: readonly Setting[];
}

/** A description of what a policy does, as plain data. `String(explanation)` returns it as text. */
export interface Explanation {
  /** The name of the policy; null when it has none. */
  readonly policy: string | null;
  /** The parts that wrap the whole work with all its attempts, outermost first. */
  readonly operationRing: readonly ExplainedPlace[];
  /** The parts that wrap each single attempt, outermost first. */
  readonly attemptRing: readonly ExplainedPlace[];
  /** The settings that belong to no part in `operationRing` or `attemptRing`. */
  readonly others: readonly Setting[];
  /** The waits after each of the first ten attempts. Empty for a policy with only one attempt. */
  readonly delays: readonly DelayRow[];
  readonly time: WorstTime;
  readonly load: WorstLoad;
  readonly retried: readonly string[];
  readonly notRetried: readonly string[];
  readonly hints: string;
  toString(): string;
}

/** Options of `explain`: facts that the policy itself does not contain. */
export interface ExplainOptions {
  /**
   * The policies of outer callers that also retry this work, outermost first. For example, an event consumer
   * retries the handler that uses this policy. Default: none.
   */
  readonly within?: readonly Policy[] | undefined;
}

/** Explains what a policy does, without calling any operation. */
export function explain(policy: Policy, { within = [] }: ExplainOptions = {}): Explanation {
  const { plan, parts, spec } = policy;
  const settings = policy.settings as PartSettings;
  const isGuarded = plan.work(undefined, 0, Infinity).guards !== undefined;
  const fields: Table = Object.assign({}, ...parts.map((part) => part.fields));
  const effective = effectiveSettings(fields, spec);
  const withSettings = ({ fields: of, ...place }: Place): ExplainedPlace => ({
    ...place,
    settings: effective.filter(({ path }) => of.includes(rootOf(path))),
  });

  const operation = operationRing(plan, settings, isGuarded);
  const attempt = attemptRing(plan, settings, isGuarded);
  const placed = ['mode', ...[...operation, ...attempt].flatMap((each) => each.fields)];
  const explanation = {
    policy: policy.name ?? null,
    operationRing: operation.map(withSettings),
    attemptRing: attempt.map(withSettings),
    others: effective.filter(({ path }) => !placed.includes(rootOf(path))),
    delays: delayTable(plan),
    time: worstTime(plan, isGuarded),
    load: worstLoad(plan, settings, within),
    retried: plan.attempts > 1 ? sayRetried(plan, settings, isGuarded) : [],
    notRetried: sayNotRetried(settings.neverOn ?? []),
    hints: sayHints(plan.hintCapMs),
  };
  // `toString` is not enumerable, so that copies of the explanation contain only data.
  return Object.defineProperty(explanation, 'toString', {
    value: () => explainText(explanation),
  }) as Explanation;
}

/** Returns an explanation as text. It also accepts an explanation that was parsed from JSON. */
export function explainText(explanation: Omit<Explanation, 'toString'>): string {
  const { policy, others, delays, time, load, retried, notRetried, hints } = explanation;
  return [
    policy === null ? 'A policy without a name' : `The policy ${policy}`,
    '',
    'Around the work, outermost first',
    ...explanation.operationRing.flatMap(placeLines),
    '',
    'Around each attempt, outermost first',
    ...explanation.attemptRing.flatMap(placeLines),
    ...(others.length > 0 ? ['', 'Other parts', `  ${saySettings(others)}`] : []),
    '',
    ...(delays.length > 0 ? ['Waits', ...delayLines(delays), ''] : []),
    'At worst',
    ...[...time.says, ...load.says].map((line) => `  ${line}`),
    '',
    ...(retried.length > 0 ? ['Tried again', ...retried.map((line) => `  ${line}`), ''] : []),
    'Not tried again',
    ...notRetried.map((line) => `  ${line}`),
    '',
    hints,
    '',
    '* not in the document: the default',
  ].join('\n');
}

function placeLines({ part, on, says, settings }: ExplainedPlace): string[] {
  const line = `  ${part.padEnd(17)}${says}`;
  return on && settings.length > 0 ? [line, `${' '.repeat(19)}${saySettings(settings)}`] : [line];
}

/** A `*` after a value means that the value is the default. */
function saySettings(settings: readonly Setting[]): string {
  const roots = new Set(settings.map(({ path }) => rootOf(path)));
  return settings
    .filter(({ value }) => value !== notSet)
    .map(({ path, value, isDefault }) => {
      // If all settings belong to one group, such as `backoff`, the group name is left out: `base` instead of
      // `backoff.base`.
      const name = roots.size === 1 ? path.slice(path.indexOf('.') + 1) : path;
      return `${name} ${value}${isDefault ? '*' : ''}`;
    })
    .join(', ');
}

function delayLines(delays: readonly DelayRow[]): string[] {
  const rows = delays.map(({ afterAttempt, leastMs, typicalMs, mostMs, throttled }) => [
    String(afterAttempt),
    ...[leastMs, typicalMs, mostMs, throttled.typicalMs, throttled.mostMs].map(formatMs),
  ]);
  const head = ['after attempt', 'least', 'typical', 'most', 'throttled: typical', 'most'];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]!.length)),
  );
  return [head, ...rows].map(
    (row) => `  ${row.map((cell, column) => cell.padStart(widths[column]!)).join('  ')}`,
  );
}

function rootOf(path: string): string {
  return path.split('.')[0] as string;
}
