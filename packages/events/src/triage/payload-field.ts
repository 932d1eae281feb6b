import type { Payload } from '@holdfast/contracts';
import { HoldfastError } from 'holdfast';

/**
 * A field of a payload cannot be set. The message says why; it has no period at its end, so that it can be
 * part of a longer text.
 */
export class PayloadFieldError extends HoldfastError {
  constructor(message: string) {
    super('HOLDFAST_PAYLOAD_FIELD', message);
  }
}

/**
 * Returns the JSON payload with one field set to `value`. `path` is the path of the field, such as
 * `payload.lines.0.price`. Only the last field of the path may be new. Throws a `PayloadFieldError` if the
 * path does not exist.
 */
export function withPayloadField(payload: Payload, path: string, value: unknown): string {
  const [root, ...names] = path.split('.');
  if (root !== 'payload' || names.length === 0 || names.includes(''))
    throw new PayloadFieldError(`expected a path such as payload.total, got "${path}"`);
  const document = parsed(payload);
  let place: unknown = document;
  for (const [index, name] of names.slice(0, -1).entries()) {
    place = own(place, name);
    if (typeof place !== 'object' || place === null)
      throw new PayloadFieldError(
        `the payload has no field ${['payload', ...names.slice(0, index + 1)].join('.')}`,
      );
  }
  if (typeof place !== 'object' || place === null)
    throw new PayloadFieldError(`the payload is not an object, so it has no field ${path}`);
  const last = names.at(-1)!;
  if (Array.isArray(place) && !/^\d+$/.test(last))
    throw new PayloadFieldError(`${path} is in a list, and "${last}" is no index`);
  // A plain assignment of `__proto__` would change the prototype instead of the field.
  Object.defineProperty(place, last, { value, enumerable: true, writable: true, configurable: true });
  return JSON.stringify(document);
}

function own(place: unknown, name: string): unknown {
  if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return undefined;
  return (place as Record<string, unknown>)[name];
}

function parsed(payload: Payload): unknown {
  try {
    if (typeof payload === 'string') return JSON.parse(payload);
  } catch {
    // The text is not JSON. The error is thrown below.
  }
  throw new PayloadFieldError('the payload is not JSON; all of it can only be replaced');
}

/**
 * Returns a text with the first mistake of the JSON text `after`, its line and its column. Returns
 * `undefined` if `after` is JSON, or if `before` was not JSON either. The text has no period at its end.
 */
export function newJsonMistake(before: Payload, after: Payload): string | undefined {
  if (typeof after !== 'string' || typeof before !== 'string' || jsonError(before) !== undefined)
    return undefined;
  const message = jsonError(after);
  if (message === undefined) return undefined;
  const lines = after.slice(0, mistakeAt(after, message)).split('\n');
  const says = message
    .replace(/ in JSON at position.*$/s, '')
    .replace(/^(Unexpected token '.+?'),.*$/s, '$1');
  return `${says}, at line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

function jsonError(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The position of a mistake in a JSON text. V8 names it in most messages, but not for an unexpected token. */
function mistakeAt(text: string, message: string): number {
  const named = /at position (\d+)/.exec(message)?.[1];
  if (named !== undefined) return Number(named);
  const isToken = (error: string | undefined) => error?.startsWith('Unexpected token') === true;
  if (!isToken(message)) return text.length;
  // A text that is cut off before the mistake has another error. So a binary search finds the shortest text
  // with this error.
  let [without, having] = [0, text.length];
  while (having - without > 1) {
    const middle = (without + having) >> 1;
    if (isToken(jsonError(text.slice(0, middle)))) having = middle;
    else without = middle;
  }
  return without;
}
