import { fingerprint, fixedWords, normalizeStack } from './fingerprint.ts';

/** An error as engines store it: plain data of limited size. */
export interface ErrorNote {
  /** The name of the error, such as `TypeError`. */
  readonly type: string;
  /** At most 512 characters. */
  readonly message: string;
  readonly code?: string;
  /** At most 8 KiB. */
  readonly stack?: string;
  /** The causes of the error, at most 4, the direct cause first. */
  readonly causes?: readonly CauseNote[];
  /**
   * A hash of the error type, the codes of the error and of its cause, an HTTP status, the source locations in the
   * stack, and the fixed words of the message. Errors that are thrown at the same place for the same reason have the
   * same hash, also if their messages contain different numbers, texts in quotes, or names with a capital letter
   * after the first word.
   */
  readonly fingerprint: string;
}

/** One cause of an error, as it is stored: without its stack. */
export interface CauseNote {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
}

/** The most characters of an error message that are stored. A longer message is cut. */
export const messageMax = 512;
const stackMax = 8192;
const causesMax = 4;

/** Turns any thrown value into an `ErrorNote`. `redact` removes secrets from the messages and the stack. */
export function errorNote(error: unknown, redact: (text: string) => string = (text) => text): ErrorNote {
  const outermost = causeNote(error, redact);
  const stack = stackOf(error);
  const causes = causeNotes(error, redact);
  const causeCode = causes.find(({ code }) => code !== undefined)?.code;
  return {
    ...outermost,
    message: withCause(outermost.message, causeCode),
    ...(stack && { stack: redact(stack).slice(0, stackMax) }),
    ...(causes.length > 0 && { causes }),
    fingerprint: fingerprintOf(error, outermost, causeCode, stack ?? ''),
  };
}

interface RecentError {
  readonly kind: string;
  readonly message: string;
  readonly fingerprint: string;
}

/** Recent errors by their stacks. In an outage, the same error is thrown thousands of times. */
const recentErrors = new Map<string, RecentError>();
/** Normalised stacks by their frames, for errors of one place whose messages differ. */
const recentStacks = new Map<string, string>();
const recentMax = 64;

function remember<T>(recent: Map<string, T>, key: string, value: T): T {
  if (recent.size >= recentMax) recent.clear();
  if (key.length <= stackMax) recent.set(key, value);
  return value;
}

/** Appends the code of the cause, such as `ECONNRESET`. `fetch failed` alone does not say what went wrong. */
function withCause(message: string, causeCode: string | undefined): string {
  if (causeCode === undefined || message.includes(causeCode)) return message;
  return `${message.slice(0, messageMax - causeCode.length - 3)} (${causeCode})`.trim().slice(0, messageMax);
}

function fingerprintOf(
  error: unknown,
  outermost: CauseNote,
  causeCode: string | undefined,
  stack: string,
): string {
  const { type, code, message } = outermost;
  let kind = type;
  for (const part of [code, causeCode, statusOf(error)]) if (part !== undefined) kind += ` ${part}`;
  const recent = recentErrors.get(stack);
  if (recent?.kind === kind && recent.message === message) return recent.fingerprint;
  const words = fixedWords(message);
  const frames = framesOf(stack);
  // A message of values only, from no known place, is all that tells this error from others.
  const made = fingerprint(kind, frames === '' && words === '' ? message : `${frames}\n${words}`);
  return remember(recentErrors, stack, { kind, message, fingerprint: made }).fingerprint;
}

function framesOf(stack: string): string {
  const from = stack.indexOf('\n    at ');
  if (from < 0) return normalizeStack(stack);
  // The message is before the frames. Without it, errors with different messages share the result.
  const frames = stack.slice(from + 1, from + 1 + stackMax);
  // In V8, `frames` keeps the whole stack in memory.
  if (stack.length > 2 * stackMax) return normalizeStack(frames);
  return recentStacks.get(frames) ?? remember(recentStacks, frames, normalizeStack(frames));
}

/** HTTP clients put the status of a response on their errors. */
function statusOf(error: unknown): number | undefined {
  const statuses = [property(error, 'status'), property(error, 'statusCode')];
  return statuses.find((status) => typeof status === 'number' && status >= 100 && status <= 599) as
    | number
    | undefined;
}

function causeNotes(error: unknown, redact: (text: string) => string): CauseNote[] {
  const notes: CauseNote[] = [];
  let cause = property(error, 'cause');
  while (cause !== undefined && cause !== null && notes.length < causesMax) {
    notes.push(causeNote(cause, redact));
    cause = property(cause, 'cause');
  }
  return notes;
}

function causeNote(error: unknown, redact: (text: string) => string): CauseNote {
  const code = property(error, 'code');
  return {
    type: typeOf(error),
    message: redact(messageOf(error)).slice(0, messageMax),
    ...((typeof code === 'string' || typeof code === 'number') && {
      code: String(code).slice(0, messageMax),
    }),
  };
}

function typeOf(error: unknown): string {
  const name = property(error, 'name');
  return typeof name === 'string' && name !== '' ? name.slice(0, messageMax) : typeof error;
}

function messageOf(error: unknown): string {
  const message = property(error, 'message');
  if (typeof message === 'string') return message;
  try {
    return typeof error === 'object' ? (JSON.stringify(error) ?? '') : String(error);
  } catch {
    return ''; // JSON.stringify threw, for example for a circular object.
  }
}

function stackOf(error: unknown): string | undefined {
  const stack = property(error, 'stack');
  return typeof stack === 'string' ? stack : undefined;
}

function property(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[name];
  } catch {
    return undefined; // The getter of the property threw.
  }
}
