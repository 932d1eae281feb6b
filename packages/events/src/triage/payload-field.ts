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
