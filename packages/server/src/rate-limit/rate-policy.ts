/** One limit, by its name in the `RateLimit` fields. */
export interface RatePolicy {
  readonly name: string;
  readonly ratePerMs: number;
  readonly burst: number;
}

/** The result of taking from all limits of a route at once. */
export interface Taken {
  /** 0: the request may pass. */
  readonly waitMs: number;
  /** The tokens that each limit still has, with a fraction. */
  readonly tokens: readonly number[];
  /** The names of the limits that refused. */
  readonly violated: readonly string[];
}

/** Field values are cached for fewer remaining tokens than this. */
const textsMax = 1024;

/** Writes `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
export class RateFields {
  /** Constant, as the draft asks. */
  readonly policy: string;
  readonly #policies: readonly RatePolicy[];
  /** `"name";r=` of each limit. */
  readonly #heads: readonly string[];
  /** With one limit of at least one request a second, the value depends on the whole tokens alone, and is cached by them. */
  readonly #texts: string[] | undefined;

  constructor(policies: readonly RatePolicy[]) {
    this.#policies = policies;
    this.#heads = policies.map(({ name }) => `"${name}";r=`);
    this.policy = policies
      .map(({ name, ratePerMs, burst }) => `"${name}";q=${Math.floor(burst)};w=${seconds(burst / ratePerMs)}`)
      .join(', ');
    this.#texts = policies.length === 1 && policies[0]!.ratePerMs >= 0.001 ? [] : undefined;
  }

  /** `waitMs`: until a request may pass; 0 when one may pass now. */
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
      // When the next token comes: until then only the tokens that are left can be used.
      const nextMs = (left + 1 - tokens[index]!) / this.#policies[index]!.ratePerMs;
      // An infinite wait is of a request that costs more than the burst, and says nothing about others.
      const window = seconds(left === 0 && waitMs < Infinity ? Math.max(nextMs, waitMs) : nextMs);
      text += `${index > 0 ? ', ' : ''}${this.#heads[index]}${left};t=${window}`;
    }
    return text;
  }
}

/** The `X-RateLimit-*` headers, for clients that do not know the draft. */
export function legacyFields(policy: RatePolicy, tokens: number): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit': String(Math.floor(policy.burst)),
    'x-ratelimit-remaining': String(whole(tokens)),
    'x-ratelimit-reset': String(seconds((policy.burst - tokens) / policy.ratePerMs)),
  };
}

/** Sums of fractions drift: a thousandth is forgiven, as in `gcraWait`. */
function whole(tokens: number): number {
  return Math.floor(tokens + 0.001);
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
