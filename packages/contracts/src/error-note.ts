import { fingerprint, normalizeStack } from './fingerprint.ts';

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
   * A hash of the error type, the code of the cause and the source locations in the stack. Errors that are
   * thrown at the same place have the same hash.
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
    fingerprint: fingerprintOf(outermost, causeCode, stack ?? ''),
  };
}

/**
 * The fingerprints of recent stacks. In an outage the same stack is thrown thousands of times, and hashing it
 * is slow.
 */
const seenStacks = new Map<string, { readonly type: string; readonly fingerprint: string }>();
const seenMax = 64;

/** Appends the code of the cause, such as `ECONNRESET`. `fetch failed` alone does not say what went wrong. */
function withCause(message: string, causeCode: string | undefined): string {
  if (causeCode === undefined || message.includes(causeCode)) return message;
  return `${message.slice(0, messageMax - causeCode.length - 3)} (${causeCode})`.trim().slice(0, messageMax);
}

function fingerprintOf(outermost: CauseNote, causeCode: string | undefined, stack: string): string {
  const { message } = outermost;
  const type = causeCode === undefined ? outermost.type : `${outermost.type} ${causeCode}`;
  const seen = seenStacks.get(stack);
  if (seen?.type === type) return seen.fingerprint;
  const frames = normalizeStack(stack);
  if (frames === '') return fingerprint(type, message);
  const made = fingerprint(type, frames);
  if (seenStacks.size >= seenMax) seenStacks.clear();
  seenStacks.set(stack, { type, fingerprint: made });
  return made;
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
