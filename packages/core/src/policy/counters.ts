/**
 * Counts what a policy has done so far. The four counts of successes and failures matter most: a rising
 * `succeededAfterRetry` shows that a target is failing while its callers still succeed.
 */
export class Counters {
  operations = 0;
  attempts = 0;
  succeeded = 0;
  succeededAfterRetry = 0;
  failed = 0;
  failedAfterRetry = 0;
  hedges = 0;
  timeouts = 0;
  /** Calls that were given up and still ran when the bulkhead took their permit back. */
  zombies = 0;
  /** Work that ended with the result of a fallback. */
  fallbacks = 0;
  /** Work that ended without success, by stop reason. */
  readonly stops: Record<string, number> = {};
  /**
   * In mode `observe`: retries and stops that would have happened, counted by the key `retry` or by the stop reason.
   */
  readonly would: Record<string, number> = {};

  /** The attempts for each piece of work. 1: retries add no load. Below 1: the policy refused some calls. */
  get loadMultiplication(): number {
    return this.operations > 0 ? this.attempts / this.operations : 1;
  }
}
