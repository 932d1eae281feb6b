import { type Given, UsageError } from './command.ts';
import { textOf } from './given-values.ts';

/**
 * Converts a cursor so that it can be pasted into any terminal: `[17,"a-1"]` becomes `17.a-1`. A cursor with
 * other characters becomes base64url.
 */
export function pasteable(cursor: string): string {
  const [, number, text] = /^\[(-?\d+),"([\w.-]+)"\]$/.exec(cursor) ?? [];
  if (number !== undefined) return `${number}.${text}`;
  return /^\d+$/.test(cursor) ? cursor : Buffer.from(cursor).toString('base64url');
}

/** Converts a pasted cursor back to the form that the store uses. See `pasteable`. */
export function cursorOf(given: Given): string | undefined {
  const text = textOf(given, 'cursor');
  if (text === undefined) return undefined;
  const [, number, rest] = /^(-?\d+)\.([\w.-]+)$/.exec(text) ?? [];
  if (number !== undefined) return `[${number},"${rest}"]`;
  if (/^\d+$/.test(text)) return text;
  const cursor = Buffer.from(text, 'base64url').toString();
  if (pasteable(cursor) !== text)
    throw new UsageError(`--cursor: expected one that a page has printed, got "${text}".`);
  return cursor;
}
