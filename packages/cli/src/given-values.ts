import { type Duration, durationMs, OptionsError, systemClock } from 'holdfast';
import { type Given, UsageError } from './command.ts';

export function textOf({ flags }: Given, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

export function numberOf(given: Given, name: string): number | undefined {
  const text = textOf(given, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value))
    throw new UsageError(`--${name}: expected a number, got "${text}".`);
  return value;
}

/** Throws a `UsageError` if the value is not a whole number of at least `least`. */
export function countOf(given: Given, name: string, least: number): number | undefined {
  const value = numberOf(given, name);
  if (value === undefined || (Number.isInteger(value) && value >= least)) return value;
  throw new UsageError(`--${name}: expected a whole number from ${least} on, got "${textOf(given, name)}".`);
}

export function msOf(given: Given, name: string): number | undefined {
  const text = textOf(given, name);
  if (text === undefined) return undefined;
  try {
    return durationMs(text as Duration, `--${name}`);
  } catch (error) {
    if (error instanceof OptionsError) throw new UsageError(`${error.message}.`);
    throw error;
  }
}

/** The value as epoch ms. The user gives a date, or an age such as `2h`. */
export function momentOf(given: Given, name: string): number | undefined {
  const text = textOf(given, name);
  if (text === undefined) return undefined;
  if (/^[\d.]+(ms|[smhd])$/.test(text)) return systemClock.epochMs() - msOf(given, name)!;
  const moment = Date.parse(text);
  if (Number.isNaN(moment))
    throw new UsageError(`--${name}: expected a date or an age such as "2h", got "${text}".`);
  return moment;
}

export function onlyOperand({ operands }: Given, what: string): string {
  const [only] = operands;
  if (only === undefined) throw new UsageError(`${what} is needed.`);
  if (operands.length > 1) throw new UsageError(`${what} is needed and no more, got ${operands.length}.`);
  return only;
}

/** The value as a share from 0 to 1. The user gives `10%` or `0.1`. */
export function shareOf(given: Given, name: string): number | undefined {
  const text = textOf(given, name);
  if (text === undefined) return undefined;
  const share = text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
  if (text.trim() !== '' && share >= 0 && share <= 1) return share;
  throw new UsageError(`--${name}: expected a share such as "10%", got "${text}".`);
}
