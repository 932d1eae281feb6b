import { isReplayable } from './body.ts';
import { isRepeatable } from './idempotency-key.ts';

/** What decides whether a request may be sent more than once. */
export interface RequestTraits {
  /** It has an Idempotency-Key, the caller's or one that was made for it. */
  readonly isKeyed: boolean;
  /** Its method or its key allows it to be repeated. */
  readonly isIdempotent: boolean;
  /** Its body can be sent again, or is made by a function for each attempt. */
  readonly isReplayable: boolean;
}

export function requestTraits(method: string, body: unknown, key: string | undefined): RequestTraits {
  const isKeyed = Boolean(key);
  return {
    isKeyed,
    isIdempotent: isKeyed || isRepeatable(method),
    isReplayable: typeof body === 'function' || isReplayable(body),
  };
}
