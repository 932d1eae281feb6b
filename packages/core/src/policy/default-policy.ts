/*
 * The defaults of a policy. `PolicySpec` says what each option means, and the tables of fields in `parts/` read
 * these constants. Each part has its own constant, so that a bundle contains only the constants of its parts.
 */

export const patience = '10s';
export const attempts = 4;
export const backoff = {
  strategy: 'exponential',
  base: '100ms',
  factor: 2,
  cap: '30s',
  jitter: 'full',
} as const;
export const respectServer = { cap: '5m' } as const;

export const attemptTimeout = 'auto';

export const budget = { ratio: 0.1, window: '10s' } as const;

export const breaker = {
  window: '30s',
  minimum: 20,
  failureRatio: 0.5,
  consecutive: 5,
  slow: { over: 'auto', ratio: 0.8 },
  openFor: ['1s', '30s'],
  probes: 3,
  whenOpen: 'stop',
} as const;

/** The part `choice`, which runs with several `targets` use. */
export const choice = { consecutive: 5, ejectFor: ['10s', '5m'] } as const;

export const mode = 'enforce';

/* A policy has the parts below only if its document names them. */

export const bulkhead = { concurrent: 100, queue: 50 } as const;
export const limiter = { rate: '50/s', burst: 100, wait: '0ms' } as const;
export const hedge = { extraLoad: 0.02 } as const;
export const throttle = { k: 2, window: '30s' } as const;
export const cache = { fresh: '1s', staleIfError: '0ms', entriesMax: 1000 } as const;
/** The field `to` is required, so it has no default. */
export const fallback = { reserve: '0ms' } as const;
