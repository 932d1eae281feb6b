import { OTHER } from './metrics.ts';

/** Codes and names of errors look like this; a sentence, an address or a token of a user hardly does. */
const nameLike = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$/;

/** How deep an error is looked into for a better name: `fetch failed` says less than its cause. */
const causesMax = 4;

/**
 * A short name for what an attempt gave: a status, else a code, else the name of the error. Never a message: those hold
 * what users sent.
 */
export function errorType(outcome: unknown): string {
  try {
    return isObject(outcome) ? nameOf(outcome) : typeof outcome;
  } catch {
    return OTHER; // a getter that throws
  }
}

function nameOf(outcome: Stranger): string {
  let thing: unknown = outcome;
  for (let depth = 0; depth < causesMax && isObject(thing); depth++) {
    const found = statusOf(thing) ?? codeOf(thing);
    if (found !== undefined) return found;
    thing = thing.cause ?? (Array.isArray(thing.errors) ? thing.errors[0] : undefined);
  }
  const { name } = outcome;
  if (typeof name === 'string' && nameLike.test(name)) return name;
  return outcome instanceof Error ? 'Error' : OTHER;
}

function statusOf(thing: Stranger): string | undefined {
  const response = isObject(thing.response) ? thing.response : thing;
  const status = response.status ?? response.statusCode;
  return Number.isInteger(status) && Number(status) >= 100 && Number(status) < 600 ? `${status}` : undefined;
}

/** A text such as ECONNRESET or 40001, or a number as gRPC has them. The numbers of DOMException mean nothing today. */
function codeOf(thing: Stranger): string | undefined {
  const { code } = thing;
  if (Number.isSafeInteger(code) && !isDomException(thing)) return `${code}`;
  return typeof code === 'string' && nameLike.test(code) ? code : undefined;
}

function isDomException(thing: Stranger): boolean {
  return typeof DOMException === 'function' && thing instanceof DOMException;
}

type Stranger = Record<string, unknown>;

function isObject(thing: unknown): thing is Stranger {
  return (typeof thing === 'object' && thing !== null) || typeof thing === 'function';
}
