import { OptionsError } from '../report/errors.ts';

const unitMs = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };

/** Milliseconds as a number, or a number with its unit: `'200ms'`, `'1.5s'`, `'5m'`, `'1h'`, `'30d'`. */
export type Duration = number | `${number}${keyof typeof unitMs}`;

/** Returns the milliseconds in `value`, or NaN if it is not a duration. */
export function readDuration(value: unknown): number {
  if (typeof value === 'number') return value;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|[smhd])$/.exec(typeof value === 'string' ? value : '') ?? [];
  return Number(amount) * unitMs[unit as keyof typeof unitMs];
}

/** Returns the milliseconds in `value`. Throws an `OptionsError` for anything but a duration of at least 0. */
export function durationMs(value: Duration | string, path = 'duration'): number {
  const ms = readDuration(value);
  if (ms >= 0) return ms;
  throw new OptionsError(path, value, 'a duration such as "200ms"');
}
