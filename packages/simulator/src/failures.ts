/**
 * The error of a simulated server, with the fields of real client errors. Each failure is a new object,
 * because policies identify an error by its object.
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

/** A 400 means that the request itself is invalid, so a retry fails as well. */
export function rejected(): Failure {
  return { status: 400, headers: {} };
}
