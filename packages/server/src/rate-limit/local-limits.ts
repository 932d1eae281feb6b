import { gcraTake, gcraWait } from 'holdfast/machines';
import { BoundedTats } from './bounded-tats.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

/** The limits of one process: one number a key and limit, in bounded memory. */
export class LocalLimits {
  readonly #policies: readonly RatePolicy[];
  readonly #debts: readonly BoundedTats[];

  constructor(policies: readonly RatePolicy[], keysMax: number) {
    this.#policies = policies;
    this.#debts = policies.map(() => new BoundedTats(keysMax));
  }

  /** Keys that are remembered now. */
  get size(): number {
    return this.#debts.reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Takes from a single limit if more than `leaving` is left then; false, and nothing taken, otherwise, and where there are
   * several. Makes nothing: it is what nearly every request comes to.
   */
  tryTake(key: string, cost: number, now: number, leaving: number): boolean {
    if (this.#policies.length > 1 || leaving === Infinity) return false;
    const policy = this.#policies[0]!;
    const debt = this.#debts[0]!.of(key, now);
    if (gcraWait(policy, debt.until, now, cost) > 0) return false;
    const until = gcraTake(policy, debt.until, now, cost);
    if (tokensOf(policy, until, now) <= leaving) return false;
    debt.until = until;
    return true;
  }

  /** From all limits or from none. */
  take(key: string, cost: number, now: number): Taken {
    if (this.#policies.length === 1) return this.#takeFromOne(key, cost, now);
    const debts = this.#debts.map((each) => each.of(key, now));
    const waits = this.#policies.map((policy, index) => gcraWait(policy, debts[index]!.until, now, cost));
    const waitMs = Math.max(...waits);
    const tokens = this.#policies.map((policy, index) => {
      const debt = debts[index]!;
      if (waitMs === 0) debt.until = gcraTake(policy, debt.until, now, cost);
      return tokensOf(policy, debt.until, now);
    });
    const violated = this.#policies.filter((_, index) => waits[index]! > 0).map(({ name }) => name);
    return { waitMs, tokens, violated };
  }

  #takeFromOne(key: string, cost: number, now: number): Taken {
    const policy = this.#policies[0]!;
    const debt = this.#debts[0]!.of(key, now);
    const waitMs = gcraWait(policy, debt.until, now, cost);
    if (waitMs === 0) debt.until = gcraTake(policy, debt.until, now, cost);
    return {
      waitMs,
      tokens: [tokensOf(policy, debt.until, now)],
      violated: waitMs > 0 ? [policy.name] : [],
    };
  }
}

function tokensOf({ burst, ratePerMs }: RatePolicy, tat: number, now: number): number {
  return tat <= now ? burst : Math.max(0, burst - (tat - now) * ratePerMs);
}
