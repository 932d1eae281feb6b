import type { RateAnswer, RateLimits, RateRequest } from '@holdfast/contracts';
import type { Clock } from 'holdfast';
import { BatchingStore, defaultBatching } from '../batching-store.ts';
import { BoundedTats } from './bounded-tats.ts';
import { LocalLimits } from './local-limits.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

export interface SharedLimitsSettings {
  /** The longest wait for the store. */
  readonly timeoutMs: number;
  readonly whenUnavailable: 'share' | 'open' | 'closed';
  /** How many processes share the limit: while the store is unavailable, each has its `1 / nodes` of it. */
  readonly nodes: number;
  readonly keysMax: number;
  readonly lease: { readonly tokensMax: number; readonly forMs: number } | null;
}

/** Tokens that were taken from the shared limit, and not used yet. */
interface TokenLease {
  tokens: number;
  endsAt: number;
  /** How many tokens were leased. Each lease that was used up in time doubles the next one. */
  size: number;
  /** What the shared limit had left when they were leased. */
  sharedTokens: number;
}

/** The wait in refusals while the store is unavailable and `whenUnavailable` is `closed`. */
const closedWaitMs = 1000;

/**
 * Limits that many processes share, in a RateLimits store. A key that was refused is refused locally until the time that the
 * store gave, so that clients which ignore `Retry-After` cost the store nothing. With a lease, a busy key takes several tokens
 * at once: all of them come from the shared limit, so no more pass in the long run; at most `nodes × tokensMax` may pass up
 * to `forMs` late.
 */
export class SharedLimits {
  readonly store: BatchingStore<RateRequest, RateAnswer>;
  readonly #policies: readonly RatePolicy[];
  readonly #settings: SharedLimitsSettings;
  readonly #share: LocalLimits;
  /** Keys that the store refused: here the TAT is the time until which they are refused. */
  readonly #blocked: BoundedTats;
  readonly #leases: Map<string, TokenLease> = new Map();

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
    this.store = new BatchingStore(
      (requests) => rateLimits.take(requests),
      { ...defaultBatching, timeoutMs },
      clock,
    );
  }

  take(key: string, cost: number, now: number): Taken | Promise<Taken> {
    const blockedMs = this.#blocked.peek(key) - now;
    if (blockedMs > 0) return refusal(this.#policies, blockedMs);
    const { lease } = this.#settings;
    if (!lease || cost !== 1 || this.#policies.length > 1) return this.#takeShared(key, cost, now);

    const held = this.#leases.get(key);
    if (held && held.tokens > 0 && held.endsAt > now) {
      held.tokens--;
      return { waitMs: 0, tokens: [held.sharedTokens + held.tokens], violated: [] };
    }
    const usedUp = held !== undefined && held.endsAt > now;
    const wanted = usedUp ? Math.min(held.size * 2, lease.tokensMax) : 1;
    const size = Math.max(1, Math.min(wanted, Math.floor(held?.sharedTokens ?? wanted)));
    return this.#takeLease(key, size, now, lease.forMs);
  }

  async #takeLease(key: string, size: number, now: number, forMs: number): Promise<Taken> {
    const result = await this.store.submit(this.#request(key, size));
    if (result && !result.allowed && size > 1) {
      // The limit has fewer tokens than the lease wanted: it may still have the one that is needed.
      this.#leases.delete(key);
      return this.#takeShared(key, 1, now);
    }
    if (result?.allowed) {
      this.#remember(key, {
        tokens: size - 1,
        size,
        endsAt: now + forMs,
        sharedTokens: result.left[0]!.tokens,
      });
    }
    return this.#toTaken(key, 1, now, result);
  }

  async #takeShared(key: string, cost: number, now: number): Promise<Taken> {
    return this.#toTaken(key, cost, now, await this.store.submit(this.#request(key, cost)));
  }

  /** The key is a hash tag of Redis, so that all limits of one key are in the same shard. */
  #request(key: string, cost: number): RateRequest {
    return this.#policies.map(({ name, ratePerMs, burst }) => ({
      key: `{${key}}${name}`,
      ratePerMs,
      burst,
      cost,
    }));
  }

  #toTaken(key: string, cost: number, now: number, result: RateAnswer | undefined): Taken {
    if (!result) return this.#withoutStore(key, cost, now);
    const tokens = result.left.map((left) => left.tokens);
    if (result.allowed) return { waitMs: 0, tokens, violated: [] };
    if (cost === 1) this.#block(key, now, result.waitMs);
    const violated = this.#policies.filter((_, index) => tokens[index]! < cost).map(({ name }) => name);
    return { waitMs: result.waitMs, tokens, violated };
  }

  #block(key: string, now: number, waitMs: number): void {
    const blocked = this.#blocked.of(key, now);
    // The shared overflow entry is never set: it would block keys that were not refused.
    if (this.#blocked.peek(key) === blocked.at) blocked.at = now + waitMs;
  }

  #withoutStore(key: string, cost: number, now: number): Taken {
    const { whenUnavailable } = this.#settings;
    if (whenUnavailable === 'share') return this.#share.take(key, cost, now);
    if (whenUnavailable === 'closed') return refusal(this.#policies, closedWaitMs);
    return { waitMs: 0, tokens: this.#policies.map(({ burst }) => burst), violated: [] };
  }

  #remember(key: string, lease: TokenLease): void {
    // Forgotten tokens were taken from the shared limit: a few requests fewer may pass, never more.
    if (this.#leases.size >= this.#settings.keysMax) this.#leases.clear();
    this.#leases.set(key, lease);
  }
}

function refusal(policies: readonly RatePolicy[], waitMs: number): Taken {
  return { waitMs, tokens: policies.map(() => 0), violated: policies.map(({ name }) => name) };
}
