/** When a server asks to be called again. */
export interface Hint {
  /** Ms from now; never negative, always finite. */
  readonly retryAfterMs?: number | undefined;
  /** A hint header that could not be parsed, verbatim but shortened. */
  readonly unreadable?: string | undefined;
}

/** Longer headers are not parsed. */
const lengthMax = 256;

/**
 * Reads `retry-after-ms`, `x-ms-retry-after-ms`, `Retry-After`, `RateLimit`, `RateLimit-Reset` or `X-RateLimit-Reset`:
 * the first of them that can be parsed. A reset counts only when nothing remains of the limit, or when the status was 429
 * (`throttled`). `headers` may be a `Headers` or anything with a `get`, an object, an array of pairs, or an array of
 * alternating names and values. Never throws.
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
    // A getter or a proxy threw: there is no hint.
  }
  return { retryAfterMs, unreadable };
}

/** Looks up a header by its name in lower case, in all shapes that `readHint` accepts. */
export function headerReader(headers: unknown): (name: string) => string | undefined {
  const from = Object(headers);
  // Alternating names and values, made from pairs, properties or such a list.
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
 * Seconds, the largest of several; or one of the three forms of an HTTP date. A year of two digits is the one within 50 years
 * of now.
 */
function readDelay(text: string, epochMs: () => number): number {
  const ms = Math.max(...text.split(/, */).map(readNumber)) * 1000;
  if (ms >= 0) return ms;
  // A strict pattern, because `Date.parse` finds a date in almost any text.
  if (!/^[A-Z][a-z]+,? [\w -]{6,11} \d\d:\d\d:\d\d (GMT|\d{4})$/.test(text)) return NaN;
  const year = new Date(epochMs()).getUTCFullYear();
  const date = text.replace(/-(...)-(\d\d) /, (_, month, digits) => {
    return ` ${month} ${year - 50 + ((digits - year + 10_050) % 100)} `;
  });
  return Math.max(0, Date.parse(date.replace(/\d{4}$/, '$& GMT')) - epochMs());
}

/** Seconds from now, or a time in seconds or ms since 1970. Numbers from 1e9 on (30 years in seconds) are times. */
function readReset(text: string, epochMs: () => number): number {
  const reset = readNumber(text);
  return reset >= 1e9 ? Math.max(0, reset * (reset < 1e11 ? 1000 : 1) - epochMs()) : readDelay(text, epochMs);
}

/** `"hourly";r=0;t=12, "daily";r=90;t=3600`, or as in an older draft `limit=10, remaining=0, reset=12`. */
function readRateLimit(text: string, throttled: boolean): number | undefined {
  let least = Infinity;
  let ms: number | undefined = NaN;
  for (const limit of /reset=/.test(text) ? [text] : text.split(',')) {
    const left = Number(/\br(?:emaining)?=(\d+)/.exec(limit)?.[1]);
    const resetMs = Number(/\b(?:t|reset)=(\d+)/.exec(limit)?.[1]) * 1000;
    // The limit with the least remaining is the one that was reached; of several, the one that resets last counts.
    if (left < least || (left === least && resetMs > ms)) {
      least = left;
      ms = resetMs;
    }
  }
  return least < Infinity && !(least === 0 || throttled) ? undefined : ms;
}
