/**
 * The error of a simulated server. It looks like the error of a real client, so that policies classify it. Each error
 * is a new object, because policies remember errors by identity.
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
