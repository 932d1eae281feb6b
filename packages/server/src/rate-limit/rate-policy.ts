export interface RatePolicy {
  readonly name: string;
  readonly ratePerMs: number;
  readonly burst: number;
}

export interface Taken {
  /** The time (ms) until the request may pass. 0: it may pass now. */
  readonly waitMs: number;
  /** How many tokens each limit has left, with fractions. */
  readonly tokens: readonly number[];
  readonly violated: readonly string[];
}

const textsMax = 1024;

/** Writes the headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
export class RateFields {
  readonly policy: string;
  readonly #policies: readonly RatePolicy[];
  /** The first characters of each item in the `RateLimit` header: `"name";r=`. */
  readonly #heads: readonly string[];
  /** A cache of `RateLimit` header values. The index is the number of tokens that are left. */
  readonly #texts: string[] | undefined;

  constructor(policies: readonly RatePolicy[]) {
    this.#policies = policies;
    this.#heads = policies.map(({ name }) => `"${name}";r=`);
    this.policy = policies.map(policyItem).join(', ');
    this.#texts = policies.length === 1 && policies[0]!.ratePerMs >= 0.001 ? [] : undefined;
  }

  limit(tokens: readonly number[], waitMs: number): string {
    const texts = this.#texts;
    const only = tokens[0]!;
    if (!texts || waitMs > 1000 || only >= textsMax) return this.#write(tokens, waitMs);
    const left = whole(only);
    texts[left] ??= this.#write(tokens, 0);
    return texts[left];
  }

  #write(tokens: readonly number[], waitMs: number): string {
    let text = '';
    for (let index = 0; index < tokens.length; index++) {
      const left = whole(tokens[index]!);
      const nextMs = (left + 1 - tokens[index]!) / this.#policies[index]!.ratePerMs;
      // `waitMs` is infinite if this request costs more than the burst. That says nothing about other
      // requests.
      const window = seconds(left === 0 && waitMs < Infinity ? Math.max(nextMs, waitMs) : nextMs);
      text += `${index > 0 ? ', ' : ''}${this.#heads[index]}${left};t=${window}`;
    }
    return text;
  }
}

/**
 * Returns for example `"name";q=100;w=60`: 100 requests in 60 s. `w` is the time in which an empty limit
 * fills up again.
 */
function policyItem({ name, ratePerMs, burst }: RatePolicy): string {
  const window = seconds(burst / ratePerMs);
  return `"${name}";q=${Math.max(1, whole(ratePerMs * 1000 * window))};w=${window}`;
}

/** Returns the `X-RateLimit-*` headers, for clients that do not know the newer `RateLimit` header. */
export function legacyFields(policy: RatePolicy, tokens: number): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit': String(Math.floor(policy.burst)),
    'x-ratelimit-remaining': String(whole(tokens)),
    'x-ratelimit-reset': String(seconds((policy.burst - tokens) / policy.ratePerMs)),
  };
}

/** Tolerates an error of 0.001, because sums of fractions are inexact: 4.9999 counts as 5. */
function whole(tokens: number): number {
  return Math.floor(tokens + 0.001);
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
