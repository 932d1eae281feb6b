import { OptionsError } from 'holdfast';
import type { TopicSettings } from './broker.ts';

/**
 * Throws for a name with a NUL character. Some stores cannot keep such a name, and every store must accept the same
 * names.
 */
export function assertName(path: string, name: string | undefined): void {
  if (name?.includes('\0')) throw new OptionsError(path, name, 'a text without NUL');
}

/** Throws for a duration that is negative or not a number. A store might treat such a value as infinite, or lose it. */
export function assertDurationMs(path: string, ms: number | undefined): void {
  if (ms !== undefined && !(typeof ms === 'number' && ms >= 0))
    throw new OptionsError(path, ms, 'a number of ms from 0');
}

/**
 * Throws for an invalid topic name or setting. Engines call it in `declare`; otherwise the error would first appear
 * when an event is handled.
 */
export function assertTopic(name: string, { ordering, keepSettledMs }: Partial<TopicSettings>): void {
  if (typeof name !== 'string' || name === '') throw new OptionsError('topic', name, 'the name of a topic');
  assertName('topic', name);
  if (ordering !== undefined && ordering !== 'none' && ordering !== 'key')
    throw new OptionsError('ordering', ordering, 'none or key');
  assertDurationMs('keepSettledMs', keepSettledMs);
}

/**
 * About 140,000 years. The current time plus twice this value is still exact, both as an SQL `bigint` and as a
 * JavaScript number.
 */
const clampedMaxMs = 2 ** 52;

/** Replaces infinite times and durations by ±140,000 years, for stores that keep whole numbers. */
export function clampMs(ms: number): number {
  return Math.max(-clampedMaxMs, Math.min(ms, clampedMaxMs));
}

/**
 * Like `JSON.stringify`, but writes Infinity as the largest number. `JSON.stringify` would write null, and the value
 * would be lost.
 */
export function jsonWithInfinity(value: object): string {
  return JSON.stringify(value, (_, each) =>
    each === Infinity || each === -Infinity ? Math.sign(each) * Number.MAX_VALUE : each,
  );
}
