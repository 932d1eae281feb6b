/**
 * Counts what a policy has done. Each ended run is in exactly one of `succeeded`, `succeededAfterRetry`,
 * `failed` and `failedAfterRetry`. `succeeded` and `failed` count only runs without a retry. A rising
 * `succeededAfterRetry` shows that a target has begun to fail, while retries still hide the failures from
 * callers.
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
  /**
   * Calls that still ran 30 s after the policy had given them up. The bulkhead (the limit of calls in flight)
   * then took back their permits.
   */
  zombies = 0;
  /** Runs that failed, but returned the result of a fallback. */
  fallbacks = 0;
  /** How many runs ended without success, by stop reason. */
  readonly stops: Record<string, number> = {};
  /**
   * In mode `observe`: how often the policy would have retried (key `retry`) or given up (key: the stop
   * reason). All other counters count only the calls that were really made.
   */
  readonly would: Record<string, number> = {};

  /**
   * Attempts divided by operations. Above 1: retries add load. Below 1: the policy refused some operations
   * without an attempt.
   */
  get loadMultiplication(): number {
    return this.operations > 0 ? this.attempts / this.operations : 1;
  }
}
