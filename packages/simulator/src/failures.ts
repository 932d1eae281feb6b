/**
 * What a simulated server answers with when it does not serve: shaped as the errors of real clients are, so that the
 * policy's own classifiers judge them. A new object each time, because a policy remembers what it gave up on.
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

/** The request itself is wrong: it will be as wrong the next time. */
export function rejected(): Failure {
  return { status: 400, headers: {} };
}
