import 'holdfast/ambient';
import { callback, type FieldsOf } from 'holdfast/fields';
import type { Exchange } from './exchange.ts';
import { readKey } from './idempotency/idempotency-key.ts';
import { storeKey } from './idempotency/request-fingerprint.ts';
import { readOptions } from './option-fields.ts';
import type { Part } from './part.ts';
import { problem } from './problem.ts';

/**
 * The options of `packaging`. Without `scope`, the Idempotency-Key of a request is not used for outgoing
 * calls.
 */
export interface PackagingOptions {
  /**
   * Returns the owner of an Idempotency-Key, for example the authenticated user. The handler's outgoing calls
   * derive their keys from both, so a retry has no second effect. Default: none, because two clients may send
   * the same key.
   */
  scope?: ((exchange: Exchange) => string | undefined) | undefined;
}

export const packagingFields = {
  scope: callback<(exchange: Exchange) => string | undefined>(),
} satisfies FieldsOf<PackagingOptions>;

const invalid = problem('key-invalid');

/**
 * A part for `guard`, for a service that only forwards requests. Outgoing calls make one attempt, because the
 * client of this service retries.
 */
export function packaging(options: PackagingOptions = {}): Part {
  const { scope } = readOptions(packagingFields, options, 'packaging', '{ scope }');
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
