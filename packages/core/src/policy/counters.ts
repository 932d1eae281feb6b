/**
 * Counts what a policy has done. A rising `succeededAfterRetry` shows that a target is failing although callers still
 * succeed.
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
  /** Calls that were given up but still ran when the bulkhead took back their permit. */
  zombies = 0;
  /** Work that ended with the result of a fallback. */
  fallbacks = 0;
  /** How often work ended without success, by stop reason. */
  readonly stops: Record<string, number> = {};
  /**
   * In mode `observe`: how often the policy would have retried (`retry`) or stopped (by stop reason). The other
   * counters are of the calls that were really made.
   */
  readonly would: Record<string, number> = {};

  /** Attempts per piece of work. Above 1: retries add load. Below 1: the policy refused some calls. */
  get loadMultiplication(): number {
    return this.operations > 0 ? this.attempts / this.operations : 1;
  }
}
