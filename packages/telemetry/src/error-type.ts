import { causesOf, type UnknownObject } from 'holdfast';
import { OTHER } from './metrics.ts';

/**
 * Matches error codes and error names. Sentences and addresses hardly ever match, so user data is kept out.
 */
const nameLike = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$/;

/**
 * Returns a short name for a failed outcome: an HTTP status, an error code or the name of the error. It never
 * returns a message, because messages may contain user data.
 */
export function errorType(outcome: unknown): string {
  try {
    return isObject(outcome) ? nameOf(outcome) : typeof outcome;
  } catch {
    return OTHER; // a getter of the outcome may throw
  }
}

function nameOf(outcome: UnknownObject): string {
  // Look at the causes of the error, too: `fetch failed` says less than its cause, such as `ECONNRESET`.
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
 * Returns the code of an error: a text such as `ECONNRESET`, or a number as in gRPC. The old numeric codes of
 * DOMException are ignored.
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
