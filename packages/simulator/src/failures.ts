/**
 * The error of a simulated server. It has the shape of the errors of real clients, so that policies classify it as
 * usual. Each error is a new object, because a policy remembers the errors of failed runs by identity.
 */
export interface Failure {
  readonly code?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export function connectionRefused(): Failure {
  return { code: 'ECONNREFUSED' };
}

export function connectionReset(): Failure {
  return { code: 'ECONNRESET' };
}

export function overloaded(retryAfterMs: number | undefined): Failure {
  return { status: 503, headers: retryAfterMs === undefined ? {} : { 'retry-after-ms': `${retryAfterMs}` } };
}

export function tooMany(retryAfterMs: number | undefined): Failure {
  return { status: 429, headers: retryAfterMs === undefined ? {} : { 'retry-after-ms': `${retryAfterMs}` } };
}

export function broken(): Failure {
  return { status: 500, headers: {} };
}

/** The request itself is invalid, so a retry would fail, too. */
export function rejected(): Failure {
  return { status: 400, headers: {} };
}
