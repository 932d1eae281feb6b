/** One rate limit. Its name appears in the `RateLimit` headers. */
export interface RatePolicy {
  readonly name: string;
  readonly ratePerMs: number;
  readonly burst: number;
}

/** The result of taking tokens from all limits together. */
export interface Taken {
  /** How long to wait until the request may pass; 0 if it may pass now. */
  readonly waitMs: number;
  /** How many tokens each limit still has, with a fraction. */
  readonly tokens: readonly number[];
  /** The names of the limits that refused. */
  readonly violated: readonly string[];
}

/** Header values are cached only if fewer tokens than this are left. */
const textsMax = 1024;

/** Writes the headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
export class RateFields {
  /** The value of `RateLimit-Policy`. It is the same in all responses, as the draft requires. */
  readonly policy: string;
  readonly #policies: readonly RatePolicy[];
  /** The start of each limit's part in the `RateLimit` header: `"name";r=`. */
  readonly #heads: readonly string[];
  /**
   * A cache of `RateLimit` values, by the number of whole tokens. It is used with a single limit of at least one
   * request a second: the next token then always comes within one second, so `t`, the number of seconds until the next
   * token, is always 1.
   */
  readonly #texts: string[] | undefined;

  constructor(policies: readonly RatePolicy[]) {
    this.#policies = policies;
    this.#heads = policies.map(({ name }) => `"${name}";r=`);
    this.policy = policies
      .map(({ name, ratePerMs, burst }) => `"${name}";q=${Math.floor(burst)};w=${seconds(burst / ratePerMs)}`)
      .join(', ');
    this.#texts = policies.length === 1 && policies[0]!.ratePerMs >= 0.001 ? [] : undefined;
  }

  /** Returns the value of `RateLimit`. `waitMs` is the time until a request may pass; 0 if one may pass now. */
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
      // The time until the next token comes. Until then the client can use only the tokens that are left.
      const nextMs = (left + 1 - tokens[index]!) / this.#policies[index]!.ratePerMs;
      // An infinite `waitMs` belongs to a request that costs more than the burst. It says nothing about other requests.
      const window = seconds(left === 0 && waitMs < Infinity ? Math.max(nextMs, waitMs) : nextMs);
      text += `${index > 0 ? ', ' : ''}${this.#heads[index]}${left};t=${window}`;
    }
    return text;
  }
}

/** Returns the `X-RateLimit-*` headers, for clients that do not know the draft. */
export function legacyFields(policy: RatePolicy, tokens: number): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit': String(Math.floor(policy.burst)),
    'x-ratelimit-remaining': String(whole(tokens)),
    'x-ratelimit-reset': String(seconds((policy.burst - tokens) / policy.ratePerMs)),
  };
}

/**
 * Rounds down, but accepts an error of a thousandth, because sums of fractions are inexact. `gcraWait` does the same.
 */
function whole(tokens: number): number {
  return Math.floor(tokens + 0.001);
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
