import { OptionsError } from '../report/errors.ts';

const unitMs = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };

/** A number of milliseconds, or a text with a unit: `'200ms'`, `'1.5s'`, `'5m'`, `'1h'`, `'30d'`. */
export type Duration = number | `${number}${keyof typeof unitMs}`;

/** Converts a duration to milliseconds. Returns NaN if `value` is not a duration. */
export function readDuration(value: unknown): number {
  if (typeof value === 'number') return value;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|[smhd])$/.exec(typeof value === 'string' ? value : '') ?? [];
  return Number(amount) * unitMs[unit as keyof typeof unitMs];
}

/** Converts a duration to milliseconds. Throws an `OptionsError` if `value` is negative or not a duration. */
export function durationMs(value: Duration | string, path = 'duration'): number {
  const ms = readDuration(value);
  if (ms >= 0) return ms;
  throw new OptionsError(path, value, 'a duration such as "200ms"');
}
