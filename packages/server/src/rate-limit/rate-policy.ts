/** One limit: its rate, and how the fields of the draft tell of it. */
export interface RatePolicy {
  readonly name: string;
  readonly ratePerMs: number;
  readonly burst: number;
}

/** What came of taking from all limits of a route at once. */
export interface Taken {
  /** 0: it may pass. */
  readonly waitMs: number;
  /** What each limit still has, with a fraction. */
  readonly tokens: readonly number[];
  /** Limits that refused. */
  readonly violated: readonly string[];
}

/** Texts for so many remaining requests are kept. */
const textsMax = 1024;

/** Writes `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
export class RateFields {
  /** Never changes, as the draft wishes. */
  readonly policy: string;
  readonly #policies: readonly RatePolicy[];
  /** `"name";r=` of each. */
  readonly #heads: readonly string[];
  /** With one limit of at least one a second, the field has only as many values as there are tokens. */
  readonly #texts: string[] | undefined;

  constructor(policies: readonly RatePolicy[]) {
    this.#policies = policies;
    this.#heads = policies.map(({ name }) => `"${name}";r=`);
    this.policy = policies
      .map(({ name, ratePerMs, burst }) => `"${name}";q=${Math.floor(burst)};w=${seconds(burst / ratePerMs)}`)
      .join(', ');
    this.#texts = policies.length === 1 && policies[0]!.ratePerMs >= 0.001 ? [] : undefined;
  }

  /** `waitMs`: until anything passes; 0 when something may pass now. */
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
      // Until then no more than what is left can be used: the next token comes no earlier.
      const nextMs = (left + 1 - tokens[index]!) / this.#policies[index]!.ratePerMs;
      // What costs more than the whole limit waits for ever; others do not.
      const window = seconds(left === 0 && waitMs < Infinity ? Math.max(nextMs, waitMs) : nextMs);
      text += `${index > 0 ? ', ' : ''}${this.#heads[index]}${left};t=${window}`;
    }
    return text;
  }
}

/** For clients that know nothing newer; asked for by name. */
export function legacyFields(policy: RatePolicy, tokens: number): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit': String(Math.floor(policy.burst)),
    'x-ratelimit-remaining': String(whole(tokens)),
    'x-ratelimit-reset': String(seconds((policy.burst - tokens) / policy.ratePerMs)),
  };
}

/** Sums of fractions drift: what is nearly a whole one is one, as for the limiter itself. */
function whole(tokens: number): number {
  return Math.floor(tokens + 0.001);
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
