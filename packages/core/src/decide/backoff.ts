/**
 * Returns the ms to wait before the next attempt.
 *
 * - `attempt`: how many attempts were made so far
 * - `previousMs`: the previous wait
 * - `roll`: a random number in [0, 1)
 * - `baseMinMs`: the lowest base of the backoff: 1,000 after a throttled attempt, otherwise 0
 */
export type Delay = (attempt: number, previousMs: number, roll: number, baseMinMs: number) => number;

/** The settings of a backoff, with durations in ms. */
export interface BackoffSettings {
  readonly strategy: 'constant' | 'linear' | 'exponential' | 'fibonacci' | 'polynomial';
  readonly base: number;
  /** The growth factor of `exponential`, or the exponent of `polynomial`. */
  readonly factor: number;
  readonly cap: number;
  /**
   * How much of a delay is random. A number from 0 to 1 is the random share of the delay (1 = full jitter).
   * `plusMinus` adds or subtracts up to that many ms.
   */
  readonly jitter: 'none' | 'full' | 'equal' | 'decorrelated' | number | { readonly plusMinus: number };
}

/**
 * Returns the function that computes the delays of a strategy. The longest delay is the larger of `cap` and
 * `baseMinMs`.
 */
export function backoff({ strategy, base, factor, cap, jitter }: BackoffSettings): Delay {
  return (attempt, previousMs, roll, baseMinMs) => {
    const from = Math.max(base, baseMinMs);
    const capMs = Math.max(cap, baseMinMs);
    if (jitter === 'decorrelated') {
      return asDelayMs(from + roll * (3 * Math.max(previousMs, from) - from), capMs);
    }
    const fullMs = asDelayMs(from * growth(strategy, attempt, factor), capMs);
    if (typeof jitter === 'object') return asDelayMs(fullMs + (2 * roll - 1) * jitter.plusMinus, capMs);
    const share = jitter === 'full' ? 1 : jitter === 'equal' ? 0.5 : jitter === 'none' ? 0 : jitter;
    return fullMs * (1 - share * (1 - roll));
  };
}

function growth(strategy: BackoffSettings['strategy'], attempt: number, factor: number): number {
  if (strategy === 'linear') return attempt;
  if (strategy === 'exponential') return factor ** (attempt - 1);
  if (strategy === 'polynomial') return attempt ** factor;
  if (strategy === 'constant') return 1;
  let [last, next] = [1, 1];
  // Fibonacci numbers reach Infinity after 1,476 steps, so the loop always ends.
  for (let step = 1; step < attempt && next < Infinity; step++) [last, next] = [next, last + next];
  return last;
}

/** Makes `ms` a valid delay: negative numbers and NaN become 0, and a number above `capMs` becomes `capMs`. */
export function asDelayMs(ms: number, capMs = Infinity): number {
  return ms > 0 ? Math.min(capMs, ms) : 0;
}
