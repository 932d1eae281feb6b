import { OptionsError } from 'holdfast';
import type { TopicSettings } from './broker.ts';

/** Throws for a name with a NUL character: some stores cannot keep one, and names are the same in every store. */
export function assertName(path: string, name: string | undefined): void {
  if (name?.includes('\0')) throw new OptionsError(path, name, 'a text without NUL');
}

/** Throws for a duration that is negative or not a number: a store would keep it as one that never ends, or drop it. */
export function assertDurationMs(path: string, ms: number | undefined): void {
  if (ms !== undefined && !(typeof ms === 'number' && ms >= 0))
    throw new OptionsError(path, ms, 'a number of ms from 0');
}

/** Throws for a wrong topic when it is declared. Without it, the error would appear when the first event is handled. */
export function assertTopic(name: string, { ordering, keepSettledMs }: Partial<TopicSettings>): void {
  if (typeof name !== 'string' || name === '') throw new OptionsError('topic', name, 'the name of a topic');
  assertName('topic', name);
  if (ordering !== undefined && ordering !== 'none' && ordering !== 'key')
    throw new OptionsError('ordering', ordering, 'none or key');
  assertDurationMs('keepSettledMs', keepSettledMs);
}

/** 2 ** 52 ms are 140,000 years. Now plus twice that is still exact, as a `bigint` of SQL and as a JavaScript number. */
const clampedMaxMs = 2 ** 52;

/** A time or a duration for a store that counts in whole numbers: infinity becomes 140,000 years. */
export function clampMs(ms: number): number {
  return Math.max(-clampedMaxMs, Math.min(ms, clampedMaxMs));
}

/** JSON in which infinity is the largest number. `JSON.stringify` writes null, which would mean another rate or another time. */
export function jsonWithInfinity(value: object): string {
  return JSON.stringify(value, (_, each) =>
    each === Infinity || each === -Infinity ? Math.sign(each) * Number.MAX_VALUE : each,
  );
}
