import 'holdfast/ambient';
import { callback, type FieldsOf, readTable } from 'holdfast/fields';
import type { Exchange } from './exchange.ts';
import { readKey } from './idempotency/idempotency-key.ts';
import { storeKey } from './idempotency/request-fingerprint.ts';
import type { Part } from './part.ts';
import { problem } from './problem.ts';

/** The options of `packaging`. Without `scope`, no key of a request is passed on. */
export interface PackagingOptions {
  /**
   * Returns the owner of an Idempotency-Key, for example the authenticated user. Calls of the handler then derive their
   * keys from the owner and the key of the request, so that a retry of the client is not a second order. `undefined`:
   * this request passes no key on. Default: no key is passed on, because two clients may send the same key.
   */
  scope?: ((exchange: Exchange) => string | undefined) | undefined;
}

export const packagingFields = {
  scope: callback<(exchange: Exchange) => string | undefined>(),
} satisfies FieldsOf<PackagingOptions>;

const invalid = problem('key-invalid');

/**
 * A part for `guard` of a service that only passes requests on. Calls of its handlers make one attempt, whatever their
 * policy says: whoever called this service retries. Breakers, limits and timeouts of these policies hold as always.
 */
export function packaging(options: PackagingOptions = {}): Part {
  const { scope } = readTable(packagingFields, options, 'packaging.');
  return {
    name: 'packaging',
    enter(exchange) {
      exchange.packaging = true;
      exchange.isAmbient = true;
      const owner = scope?.(exchange);
      if (owner === undefined) return undefined;
      const given = readKey(exchange.headerLines('idempotency-key'));
      if (given === 'invalid') return invalid;
      if (given !== 'missing') exchange.idempotencyKey = storeKey(owner, exchange, given.key);
      return undefined;
    },
  };
}
