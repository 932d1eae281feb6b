import { causesOf, type UnknownObject } from 'holdfast';
import { OTHER } from './metrics.ts';

/** The pattern of codes and names of errors. Sentences, addresses and tokens of users hardly ever match it. */
const nameLike = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$/;

/**
 * A short name for a failed outcome: its status, else its code, else those of its causes, else the name of the error. Never a
 * message: messages may contain what users sent.
 */
export function errorType(outcome: unknown): string {
  try {
    return isObject(outcome) ? nameOf(outcome) : typeof outcome;
  } catch {
    return OTHER; // a getter that throws
  }
}

function nameOf(outcome: UnknownObject): string {
  // `fetch failed` says less than its cause.
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

/** A text such as ECONNRESET or 40001, or a number as in gRPC. The legacy numbers of DOMException are ignored. */
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
