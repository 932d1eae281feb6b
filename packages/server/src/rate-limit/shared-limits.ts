import type { RateAnswer, RateLimits, RateRequest } from '@holdfast/contracts';
import type { Clock } from 'holdfast';
import { BatchingStore, defaultBatching } from '../batching-store.ts';
import { BoundedTats } from './bounded-tats.ts';
import { LocalLimits } from './local-limits.ts';
import type { RatePolicy, Taken } from './rate-policy.ts';

export interface SharedLimitsSettings {
  readonly timeoutMs: number;
  readonly whenUnavailable: 'share' | 'open' | 'closed';
  /** How many processes share the limit. Without the store, each allows the limit divided by `nodes`. */
  readonly nodes: number;
  readonly keysMax: number;
  readonly lease: { readonly tokensMax: number; readonly forMs: number } | null;
}

interface TokenLease {
  tokens: number;
  endsAt: number;
  /** How many tokens were taken in advance. If all are used before `endsAt`, the next size is double. */
  size: number;
  /** How many tokens the shared limit had left after that. */
  sharedTokens: number;
}

/** The `waitMs` of refused requests while the store is unavailable. */
const closedWaitMs = 1000;

/**
 * Rate limits that many processes share through a store. With the option `lease`, a process takes several
 * tokens of a key in one call.
 */
export class SharedLimits {
  readonly store: BatchingStore<RateRequest, RateAnswer>;
  readonly #policies: readonly RatePolicy[];
  readonly #settings: SharedLimitsSettings;
  readonly #share: LocalLimits;
  /**
   * For each key that the store has refused: until when this process refuses the key without asking the
   * store.
   */
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
      // The shared limit has too few tokens for a whole lease. It may still have one for this request.
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

  /** The braces are a hash tag of Redis: all limits of one key are stored in the same shard. */
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
    // If the memory is full, `blocked` is one entry that all new keys share. Setting it would block other
    // keys, too.
    if (this.#blocked.peek(key) === blocked.at) blocked.at = now + waitMs;
  }

  #withoutStore(key: string, cost: number, now: number): Taken {
    const { whenUnavailable } = this.#settings;
    if (whenUnavailable === 'share') return this.#share.take(key, cost, now);
    if (whenUnavailable === 'closed') return refusal(this.#policies, closedWaitMs);
    return { waitMs: 0, tokens: this.#policies.map(({ burst }) => burst), violated: [] };
  }

  #remember(key: string, lease: TokenLease): void {
    // The tokens of the deleted leases are lost. So fewer requests pass, never more.
    if (this.#leases.size >= this.#settings.keysMax) this.#leases.clear();
    this.#leases.set(key, lease);
  }
}

function refusal(policies: readonly RatePolicy[], waitMs: number): Taken {
  return { waitMs, tokens: policies.map(() => 0), violated: policies.map(({ name }) => name) };
}
