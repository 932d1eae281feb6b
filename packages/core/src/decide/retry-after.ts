/** What the headers of a response say about when to try again. */
export interface Hint {
  /** In how many ms to try again; never negative, always finite. */
  readonly retryAfterMs?: number | undefined;
  /** The name and text of a header that could not be parsed, shortened. */
  readonly unreadable?: string | undefined;
}

/** Headers with more characters than this are not parsed. */
const lengthMax = 256;

/**
 * Reads from response headers when to try again. Never throws. It uses the first of these headers that can be
 * parsed: `retry-after-ms`, `x-ms-retry-after-ms`, `Retry-After`, `RateLimit`, `RateLimit-Reset`,
 * `X-RateLimit-Reset`.
 *
 * `throttled`: the status was 429. For other statuses, the rate limit headers are used only if they say that
 * no calls are left. `headers` may be a `Headers` object, a plain object, a list of pairs, or a list of
 * alternating names and values.
 */
export function readHint(headers: unknown, epochMs: () => number, throttled = false): Hint {
  let unreadable: string | undefined;
  let retryAfterMs: number | undefined;
  try {
    const header = headerReader(headers);
    const read = (name: string, parse: (text: string, epochMs: () => number) => number | undefined) => {
      const text = header(name);
      if (text === undefined || retryAfterMs !== undefined) return;
      const ms = text.length > lengthMax ? NaN : parse(text, epochMs);
      if (ms === undefined || ms >= 0) retryAfterMs = ms;
      else unreadable ??= `${name}: ${text.slice(0, lengthMax)}`;
    };
    read('retry-after-ms', readNumber);
    read('x-ms-retry-after-ms', readNumber);
    read('retry-after', readDelay);
    read('ratelimit', (text) => readRateLimit(text, throttled));
    for (const prefix of ['ratelimit-', 'x-ratelimit-']) {
      if (throttled || header(`${prefix}remaining`) === '0') read(`${prefix}reset`, readReset);
    }
  } catch {
    // Reading the headers threw, so there is no hint.
  }
  return { retryAfterMs, unreadable };
}

/**
 * Returns a function that finds a header by its lower-case name. `headers` may have any form that `readHint`
 * accepts.
 */
export function headerReader(headers: unknown): (name: string) => string | undefined {
  const from = Object(headers);
  const flat: unknown[] = (Array.isArray(from) ? from : Object.entries(from)).flat();
  const isName = (name: string) => (each: unknown, index: number) =>
    index % 2 === 0 && String(each).toLowerCase() === name;
  return (name) => {
    const value =
      typeof from.get === 'function' ? from.get(name) : flat[flat.findIndex(isName(name)) + 1 || flat.length];
    return String(value ?? '').trim() || undefined;
  };
}

function readNumber(text: string): number {
  return /^[\d.]+$/.test(text) ? Number(text) : NaN;
}

/**
 * Reads a delay in seconds (the largest of several numbers), or an HTTP date. Returns ms from now. A year
 * with two digits is the matching year within 50 years of now.
 */
function readDelay(text: string, epochMs: () => number): number {
  const ms = Math.max(...text.split(/, */).map(readNumber)) * 1000;
  if (ms >= 0) return ms;
  // The pattern is strict, because `Date.parse` finds a date in almost any text.
  if (!/^[A-Z][a-z]+,? [\w -]{6,11} \d\d:\d\d:\d\d (GMT|\d{4})$/.test(text)) return NaN;
  const year = new Date(epochMs()).getUTCFullYear();
  const date = text.replace(/-(...)-(\d\d) /, (_, month, digits) => {
    return ` ${month} ${year - 50 + ((digits - year + 10_050) % 100)} `;
  });
  return Math.max(0, Date.parse(date.replace(/\d{4}$/, '$& GMT')) - epochMs());
}

/**
 * Reads a number of seconds from now, or a time since 1970 in seconds or ms. A number of 1e9 or more is a
 * time, because a wait of 1e9 seconds would be 30 years.
 */
function readReset(text: string, epochMs: () => number): number {
  const reset = readNumber(text);
  return reset >= 1e9 ? Math.max(0, reset * (reset < 1e11 ? 1000 : 1) - epochMs()) : readDelay(text, epochMs);
}

/**
 * Parses the `RateLimit` header: `"hourly";r=0;t=12, "daily";r=90;t=3600`, or the form of an older draft:
 * `limit=10, remaining=0, reset=12`.
 */
function readRateLimit(text: string, throttled: boolean): number | undefined {
  let least = Infinity;
  let ms: number | undefined = NaN;
  for (const limit of /reset=/.test(text) ? [text] : text.split(',')) {
    const left = Number(/\br(?:emaining)?=(\d+)/.exec(limit)?.[1]);
    const resetMs = Number(/\b(?:t|reset)=(\d+)/.exec(limit)?.[1]) * 1000;
    // Use the reset time of the limit with the fewest calls left, because that limit was probably reached. If
    // several limits have equally few calls left, use the latest reset time.
    if (left < least || (left === least && resetMs > ms)) {
      least = left;
      ms = resetMs;
    }
  }
  return least < Infinity && !(least === 0 || throttled) ? undefined : ms;
}
