import { type Duration, durationMs, OptionsError, systemClock } from 'holdfast';
import { type Given, UsageError } from './command.ts';

/** The value of a flag; undefined if the flag was not given or has no value. */
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

/**
 * The value of a flag as a whole number. Throws a `UsageError` if the value is not a whole number or is below `least`.
 */
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

/** The value of a flag as a time in epoch ms. The user gives a date, or an age such as `2h`. */
export function momentOf(given: Given, name: string): number | undefined {
  const text = textOf(given, name);
  if (text === undefined) return undefined;
  if (/^[\d.]+(ms|[smhd])$/.test(text)) return systemClock.epochMs() - msOf(given, name)!;
  const moment = Date.parse(text);
  if (Number.isNaN(moment))
    throw new UsageError(`--${name}: expected a date or an age such as "2h", got "${text}".`);
  return moment;
}

/** The only operand of a command. Throws a `UsageError` if there is no operand or more than one. */
export function onlyOperand({ operands }: Given, what: string): string {
  const [only] = operands;
  if (only === undefined) throw new UsageError(`${what} is needed.`);
  if (operands.length > 1) throw new UsageError(`${what} is needed and no more, got ${operands.length}.`);
  return only;
}

/** The user and the reason for the audit log. `flag` is the name of the flag with the reason. */
export function actOf(
  given: Given,
  user: string,
  flag = 'why',
  otherwise?: string,
): { who: string; why: string } {
  const why = textOf(given, flag) ?? otherwise;
  if (why === undefined || why.trim() === '')
    throw new UsageError(`--${flag} is needed: it is kept in the audit log.`);
  return { who: textOf(given, 'who') ?? user, why };
}
