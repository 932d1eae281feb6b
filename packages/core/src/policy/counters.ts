/**
 * What a policy has done so far, for a person to read at once. The four ways in which work ends tell most:
 * a rising `succeededAfterRetry` is a failing target that nobody has noticed yet.
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
  /** Calls that outlived their permit's lease. */
  zombies = 0;
  /** Work that ended with a fallback's answer. */
  fallbacks = 0;
  /** What ended work without success, by stop reason. */
  readonly stops: Record<string, number> = {};
  /** What a policy in `observe` mode would have done, by verdict or stop reason. */
  readonly would: Record<string, number> = {};

  /** Attempts for each piece of work: 1 adds no load, below 1 the policy has spared some. */
  get loadMultiplication(): number {
    return this.operations > 0 ? this.attempts / this.operations : 1;
  }
}
