import { OptionsError } from 'holdfast';
import { type Ordering, type TopicSettings, type WaitingQuestion, waitingStates } from './broker.ts';
import { TopicError } from './contract-errors.ts';

/** Throws for a name with a NUL character. Some stores cannot store NUL, so no engine accepts it. */
export function assertName(path: string, name: string | undefined): void {
  if (name?.includes('\0')) throw new OptionsError(path, name, 'a text without NUL');
}

/** Throws for a negative duration or NaN. Some stores would treat it as infinite, so no engine accepts it. */
export function assertDurationMs(path: string, ms: number | undefined): void {
  if (ms !== undefined && !(typeof ms === 'number' && ms >= 0))
    throw new OptionsError(path, ms, 'a number of ms from 0');
}

/** Throws for a wrong name or setting of a topic. Engines call it in `declare`. */
export function assertTopic(name: string, { ordering, keepSettledMs }: Partial<TopicSettings>): void {
  if (typeof name !== 'string' || name === '') throw new OptionsError('topic', name, 'the name of a topic');
  assertName('topic', name);
  if (ordering !== undefined && ordering !== 'none' && ordering !== 'key')
    throw new OptionsError('ordering', ordering, 'none or key');
  assertDurationMs('keepSettledMs', keepSettledMs);
}

/**
 * Throws if the ordering of a topic must not become `wanted`. An order by key is never given up: another
 * process may rely on it. Engines call it in `declare`.
 */
export function assertOrderingChange(
  topic: string,
  stored: Ordering,
  wanted: Ordering,
  holdsEvents: boolean,
): void {
  if (wanted === stored || (stored === 'none' && !holdsEvents)) return;
  const why =
    stored === 'key' ? 'somebody may rely on its order' : 'its events were published without an order';
  throw new TopicError(
    topic,
    `was declared with ordering "${stored}", and "${wanted}" is refused because ${why}: ` +
      `leave \`ordering\` out, or give "${stored}", or use another topic`,
  );
}

/** About 140,000 years in ms. The current time plus this value is still exact as a JavaScript number. */
const clampedMaxMs = 2 ** 52;

/** Limits a time to ±140,000 years. Stores that keep whole numbers cannot store Infinity. */
export function clampMs(ms: number): number {
  return Math.max(-clampedMaxMs, Math.min(ms, clampedMaxMs));
}

/** Like `JSON.stringify`, but writes Infinity as the largest number instead of null. */
export function jsonWithInfinity(value: object): string {
  return JSON.stringify(value, (_, each) =>
    each === Infinity || each === -Infinity ? Math.sign(each) * Number.MAX_VALUE : each,
  );
}

/** Throws if `question` has a field or a value that `Broker.waiting` does not support. */
export function assertWaitingQuestion(question: WaitingQuestion): void {
  for (const [name, value] of Object.entries(question)) {
    if (value === undefined) continue;
    if (name === 'state') {
      const states: readonly unknown[] = Array.isArray(value) ? value : [value];
      if (!states.every((state) => waitingStates.some((known) => known === state)))
        throw new OptionsError('state', value, `${waitingStates.join(', ')}, or a list of those`);
    } else if (name === 'key' || name === 'tenant') {
      if (typeof value !== 'string') throw new OptionsError(name, value, 'a text');
      assertName(name, value);
    } else if (name === 'order') {
      if (value !== 'published' && value !== 'due')
        throw new OptionsError('order', value, 'published or due');
    } else throw new OptionsError('question', name, 'one of state, key, tenant, order');
  }
}

const boundsMax = 100;

/** Throws unless the bounds of `due` are at most 100 numbers of ms in ascending order. */
export function assertBounds(bounds: readonly number[]): void {
  const isAscending =
    Array.isArray(bounds) &&
    bounds.length <= boundsMax &&
    bounds.every((bound, index) => Number.isFinite(bound) && (index === 0 || bound > bounds[index - 1]!));
  if (!isAscending)
    throw new OptionsError('bounds', bounds, `at most ${boundsMax} numbers of ms, in ascending order`);
}
