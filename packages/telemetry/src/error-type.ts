import { causesOf, type UnknownObject } from 'holdfast';
import { OTHER } from './metrics.ts';

/** Matches codes and names of errors. Sentences and addresses hardly ever match. */
const nameLike = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$/;

/**
 * A short name for a failed outcome: a status, a code or the name of the error. It is never a message, because messages
 * may contain user data.
 */
export function errorType(outcome: unknown): string {
  try {
    return isObject(outcome) ? nameOf(outcome) : typeof outcome;
  } catch {
    return OTHER; // a getter of the outcome may throw
  }
}

function nameOf(outcome: UnknownObject): string {
  // The causes are read, too: the error `fetch failed` says less than its cause.
  for (const each of causesOf(outcome)) {
    const found = statusOf(each) ?? codeOf(each);
    if (found !== undefined) return found;
  }
  const { name } = outcome;
  if (typeof name === 'string' && nameLike.test(name)) return name;
  return outcome instanceof Error ? 'Error' : OTHER;
}

function statusOf(thing: UnknownObject): string | undefined {
  const response = isObject(thing.response) ? thing.response : thing;
  const status = response.status ?? response.statusCode;
  return Number.isInteger(status) && Number(status) >= 100 && Number(status) < 600 ? `${status}` : undefined;
}

/**
 * The code of an error: a text such as ECONNRESET, or a number as in gRPC. The legacy numbers of DOMException are
 * ignored.
 */
function codeOf(thing: UnknownObject): string | undefined {
  const { code } = thing;
  if (Number.isSafeInteger(code) && !isDomException(thing)) return `${code}`;
  return typeof code === 'string' && nameLike.test(code) ? code : undefined;
}

function isDomException(thing: UnknownObject): boolean {
  return typeof DOMException === 'function' && thing instanceof DOMException;
}

function isObject(thing: unknown): thing is UnknownObject {
  return (typeof thing === 'object' && thing !== null) || typeof thing === 'function';
}
