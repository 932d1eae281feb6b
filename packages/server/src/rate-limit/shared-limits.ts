import type { RateAnswer, RateLimits, RateRequest } from '@holdfast/contracts';
import type { Clock } from 'holdfast';
import { BatchingStore, defaultLine } from '../batching-store.ts';
import { BoundedTats } from './bounded-tats.ts';
import { LocalLimits } from './local-limits.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

export interface SharedLimitsSettings {
  /** Nobody waits longer for the store. */
  readonly timeoutMs: number;
  readonly whenAway: 'share' | 'open' | 'closed';
  /** How many processes share the limit: each has so much less while the store is away. */
  readonly nodes: number;
  readonly keysMax: number;
  readonly lease: { readonly tokensMax: number; readonly forMs: number } | null;
}

/** Taken from the shared limit, and not yet used. */
interface Lease {
  tokens: number;
  endsAt: number;
  /** How many were borrowed. It grows while they are used up in time. */
  size: number;
  /** Of the limit itself, when they were borrowed. */
  sharedTokens: number;
}

/** How long a key waits when the store is away and the choice is to refuse. */
const closedWaitMs = 1000;

/**
 * Limits that many processes share, on RateLimits. A key that was refused is refused here until the time that the store
 * said, so that those who do not listen cost the store nothing. With a lease, a busy key borrows several tokens at once:
 * all of them were taken from the shared limit, so no more passes in the long run; at most `nodes × tokensMax` may pass
 * up to `forMs` late.
 */
export class SharedLimits {
  readonly line: BatchingStore<RateRequest, RateAnswer>;
  readonly #policies: readonly RatePolicy[];
  readonly #settings: SharedLimitsSettings;
  readonly #share: LocalLimits;
  readonly #blocked: BoundedTats;
  readonly #leases: Map<string, Lease> = new Map();

  constructor(
    policies: readonly RatePolicy[],
    rateLimits: RateLimits,
    settings: SharedLimitsSettings,
    clock: Clock,
  ) {
    this.#policies = policies;
    this.#settings = settings;
    const { nodes, keysMax, timeoutMs } = settings;
    const shares = policies.map(({ name, ratePerMs, burst }) => ({
      name,
      ratePerMs: ratePerMs / nodes,
      burst: Math.max(1, burst / nodes),
    }));
    this.#share = new LocalLimits(shares, keysMax);
    this.#blocked = new BoundedTats(keysMax);
    this.line = new BatchingStore(
      (requests) => rateLimits.take(requests),
      { ...defaultLine, timeoutMs },
      clock,
    );
  }

  take(key: string, cost: number, now: number): Taken | Promise<Taken> {
    const blockedMs = this.#blocked.untilOf(key) - now;
    if (blockedMs > 0) return refusal(this.#policies, blockedMs);
    const { lease } = this.#settings;
    if (!lease || cost !== 1 || this.#policies.length > 1) return this.#ask(key, cost, now);

    const held = this.#leases.get(key);
    if (held && held.tokens > 0 && held.endsAt > now) {
      held.tokens--;
      return { waitMs: 0, tokens: [held.sharedTokens + held.tokens], violated: [] };
    }
    const usedUp = held !== undefined && held.endsAt > now;
    const wanted = usedUp ? Math.min(held.size * 2, lease.tokensMax) : 1;
    const size = Math.max(1, Math.min(wanted, Math.floor(held?.sharedTokens ?? wanted)));
    return this.#borrow(key, size, now, lease.forMs);
  }

  async #borrow(key: string, size: number, now: number, forMs: number): Promise<Taken> {
    const answer = await this.line.ask(this.#request(key, size));
    if (answer && !answer.allowed && size > 1) {
      // There is less than was hoped for: one is still one.
      this.#leases.delete(key);
      return this.#ask(key, 1, now);
    }
    if (answer?.allowed) {
      this.#remember(key, {
        tokens: size - 1,
        size,
        endsAt: now + forMs,
        sharedTokens: answer.left[0]!.tokens,
      });
    }
    return this.#taken(key, 1, now, answer);
  }

  async #ask(key: string, cost: number, now: number): Promise<Taken> {
    return this.#taken(key, cost, now, await this.line.ask(this.#request(key, cost)));
  }

  /** One hash tag for all limits of a key: where keys are spread over shards, these are not. */
  #request(key: string, cost: number): RateRequest {
    return this.#policies.map(({ name, ratePerMs, burst }) => ({
      key: `{${key}}${name}`,
      ratePerMs,
      burst,
      cost,
    }));
  }

  #taken(key: string, cost: number, now: number, answer: RateAnswer | undefined): Taken {
    if (!answer) return this.#withoutStore(key, cost, now);
    const tokens = answer.left.map((left) => left.tokens);
    if (answer.allowed) return { waitMs: 0, tokens, violated: [] };
    if (cost === 1) this.#block(key, now, answer.waitMs);
    const violated = this.#policies.filter((_, index) => tokens[index]! < cost).map(({ name }) => name);
    return { waitMs: answer.waitMs, tokens, violated };
  }

  #block(key: string, now: number, waitMs: number): void {
    const debt = this.#blocked.of(key, now);
    // Where there is no room, nobody is blocked for what another did.
    if (this.#blocked.untilOf(key) === debt.until) debt.until = now + waitMs;
  }

  #withoutStore(key: string, cost: number, now: number): Taken {
    const { whenAway } = this.#settings;
    if (whenAway === 'share') return this.#share.take(key, cost, now);
    if (whenAway === 'closed') return refusal(this.#policies, closedWaitMs);
    return { waitMs: 0, tokens: this.#policies.map(({ burst }) => burst), violated: [] };
  }

  #remember(key: string, lease: Lease): void {
    // What is forgotten here was paid for: the limit is kept, a little too well.
    if (this.#leases.size >= this.#settings.keysMax) this.#leases.clear();
    this.#leases.set(key, lease);
  }
}

function refusal(policies: readonly RatePolicy[], waitMs: number): Taken {
  return { waitMs, tokens: policies.map(() => 0), violated: policies.map(({ name }) => name) };
}
