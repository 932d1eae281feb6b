import { gcraTake, gcraWait } from 'holdfast/machines';
import { Debts } from './debts.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

const nothing: readonly string[] = [];

/** The limits of one process: one number a key and limit, in bounded memory. */
export class LocalLimits {
  readonly #policies: readonly RatePolicy[];
  readonly #debts: readonly Debts[];

  constructor(policies: readonly RatePolicy[], keysMax: number) {
    this.#policies = policies;
    this.#debts = policies.map(() => new Debts(keysMax));
  }

  /** Keys that are remembered now. */
  get size(): number {
    return this.#debts.reduce((sum, { size }) => sum + size, 0);
  }

  /** From all limits or from none. */
  take(key: string, cost: number, now: number): Taken {
    return this.#policies.length === 1 ? this.#takeOne(key, cost, now) : this.#takeAll(key, cost, now);
  }

  #takeOne(key: string, cost: number, now: number): Taken {
    const policy = this.#policies[0]!;
    const debts = this.#debts[0]!;
    const name = debts.nameOf(key, now);
    let tat = debts.get(name);
    const waitMs = gcraWait(policy, tat, now, cost);
    if (waitMs === 0) {
      tat = gcraTake(policy, tat, now, cost);
      debts.set(name, tat);
    }
    return { waitMs, tokens: [tokensOf(policy, tat, now)], violated: waitMs === 0 ? nothing : [policy.name] };
  }

  #takeAll(key: string, cost: number, now: number): Taken {
    const names = this.#debts.map((debts) => debts.nameOf(key, now));
    const waits = this.#policies.map((policy, index) =>
      gcraWait(policy, this.#debts[index]!.get(names[index]!), now, cost),
    );
    const waitMs = Math.max(...waits);
    const tokens = this.#policies.map((policy, index) => {
      const debts = this.#debts[index]!;
      let tat = debts.get(names[index]!);
      if (waitMs === 0) {
        tat = gcraTake(policy, tat, now, cost);
        debts.set(names[index]!, tat);
      }
      return tokensOf(policy, tat, now);
    });
    const violated = this.#policies.filter((_, index) => waits[index]! > 0).map(({ name }) => name);
    return { waitMs, tokens, violated };
  }
}

export function tokensOf({ burst, ratePerMs }: RatePolicy, tat: number, now: number): number {
  return tat <= now ? burst : Math.max(0, burst - (tat - now) * ratePerMs);
}
