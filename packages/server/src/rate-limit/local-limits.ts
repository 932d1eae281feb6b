import { gcraTake, gcraWait } from 'holdfast/machines';
import { BoundedTats, type Tat } from './bounded-tats.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

/** The rate limits inside one process, in bounded memory. */
export class LocalLimits {
  readonly #limits: readonly LocalLimit[];

  constructor(policies: readonly RatePolicy[], keysMax: number) {
    this.#limits = policies.map((policy) => new LocalLimit(policy, keysMax));
  }

  get size(): number {
    return this.#limits.reduce((sum, { tats }) => sum + tats.size, 0);
  }

  /**
   * Takes `cost` tokens if more than `leaving` tokens remain. It allocates no memory, because it runs for
   * nearly every request.
   */
  tryTake(key: string, cost: number, now: number, leaving: number): boolean {
    if (this.#limits.length > 1 || leaving === Infinity) return false;
    const limit = this.#limits[0]!;
    const tat = limit.tats.of(key, now);
    if (limit.waitMs(tat, now, cost) > 0 || limit.tokensAfter(tat, now, cost) <= leaving) return false;
    limit.take(tat, now, cost);
    return true;
  }

  /** Takes `cost` tokens from all limits. If one limit has too few tokens, takes none. */
  take(key: string, cost: number, now: number): Taken {
    const tats = this.#limits.map((limit) => limit.tats.of(key, now));
    const waits = this.#limits.map((limit, index) => limit.waitMs(tats[index]!, now, cost));
    const waitMs = Math.max(...waits);
    if (waitMs === 0)
      for (const [index, limit] of this.#limits.entries()) limit.take(tats[index]!, now, cost);
    return {
      waitMs,
      tokens: this.#limits.map((limit, index) => limit.tokensAfter(tats[index]!, now, 0)),
      violated: this.#limits.filter((_, index) => waits[index]! > 0).map(({ policy }) => policy.name),
    };
  }
}

class LocalLimit {
  readonly policy: RatePolicy;
  readonly tats: BoundedTats;

  constructor(policy: RatePolicy, keysMax: number) {
    this.policy = policy;
    this.tats = new BoundedTats(keysMax);
  }

  waitMs(tat: Tat, now: number, cost: number): number {
    return gcraWait(this.policy, tat.at, now, cost);
  }

  take(tat: Tat, now: number, cost: number): void {
    tat.at = gcraTake(this.policy, tat.at, now, cost);
  }

  tokensAfter(tat: Tat, now: number, cost: number): number {
    const { burst, ratePerMs } = this.policy;
    const after = cost === 0 ? tat.at : gcraTake(this.policy, tat.at, now, cost);
    return after <= now ? burst : Math.max(0, burst - (after - now) * ratePerMs);
  }
}
