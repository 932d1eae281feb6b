import { isReplayable } from './body.ts';
import { isRepeatable } from './idempotency-key.ts';

/** The properties that decide whether a request may be sent more than once. */
export interface RequestTraits {
  readonly isKeyed: boolean;
  /** Processing the request twice is harmless, because of its method or its Idempotency-Key. */
  readonly isIdempotent: boolean;
  /** The body can be sent more than once, or a function makes a new body for each attempt. */
  readonly isReplayable: boolean;
}

/**
 * Returns the properties that decide whether a request may be sent again. They depend on its method, its body
 * and its Idempotency-Key.
 */
export function requestTraits(method: string, body: unknown, key: string | undefined): RequestTraits {
  const isKeyed = Boolean(key);
  return {
    isKeyed,
    isIdempotent: isKeyed || isRepeatable(method),
    isReplayable: typeof body === 'function' || isReplayable(body),
  };
}
