/** What a server said about when to come back. */
export interface Hint {
  /** Ms from now; never negative, always finite. */
  readonly retryAfterMs?: number | undefined;
  /** A header that was meant as a hint and could not be read, as it came but shortened. */
  readonly unreadable?: string | undefined;
}

/** A hint that makes sense is shorter; a longer one is not looked at. */
const lengthMax = 256;

/**
 * Reads `retry-after-ms`, `x-ms-retry-after-ms`, `Retry-After`, `RateLimit`, `RateLimit-Reset` or `X-RateLimit-Reset`:
 * the first of them that can be read. A reset counts only when nothing remains, or when the answer was a 429
 * (`throttled`). Never throws, whatever `headers` are: a `Headers` or anything with a `get`, an object, an array of
 * pairs, or one of names and values in turn.
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
    // A getter or a proxy of somebody else's: it has no hint for us.
  }
  return { retryAfterMs, unreadable };
}

/** Looks up headers by their name in lower case, in whatever shape they are. */
export function headerReader(headers: unknown): (name: string) => string | undefined {
  const from = Object(headers);
  // Names and values in turn, whether they came as such, as pairs or as properties.
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
 * Seconds, of several lines the most; or one of the three forms of an HTTP date, where two digits mean the year that is
 * within 50 of this one.
 */
function readDelay(text: string, epochMs: () => number): number {
  const ms = Math.max(...text.split(/, */).map(readNumber)) * 1000;
  if (ms >= 0) return ms;
  // Told strictly from other text, because `Date.parse` finds a date almost anywhere.
  if (!/^[A-Z][a-z]+,? [\w -]{6,11} \d\d:\d\d:\d\d (GMT|\d{4})$/.test(text)) return NaN;
  const year = new Date(epochMs()).getUTCFullYear();
  const date = text.replace(/-(...)-(\d\d) /, (_, month, digits) => {
    return ` ${month} ${year - 50 + ((digits - year + 10_050) % 100)} `;
  });
  return Math.max(0, Date.parse(date.replace(/\d{4}$/, '$& GMT')) - epochMs());
}

/** Seconds from now or a point in time, in seconds or ms since 1970: a delay of 30 years is a point in time. */
function readReset(text: string, epochMs: () => number): number {
  const reset = readNumber(text);
  return reset >= 1e9 ? Math.max(0, reset * (reset < 1e11 ? 1000 : 1) - epochMs()) : readDelay(text, epochMs);
}

/** `"hourly";r=0;t=12, "daily";r=90;t=3600`, or of an older draft `limit=10, remaining=0, reset=12`. */
function readRateLimit(text: string, throttled: boolean): number | undefined {
  let least = Infinity;
  let ms: number | undefined = NaN;
  for (const limit of /reset=/.test(text) ? [text] : text.split(',')) {
    const left = Number(/\br(?:emaining)?=(\d+)/.exec(limit)?.[1]);
    const resetMs = Number(/\b(?:t|reset)=(\d+)/.exec(limit)?.[1]) * 1000;
    // The limit that has the least left is the one that was met; of several, the one that lasts longest.
    if (left < least || (left === least && resetMs > ms)) {
      least = left;
      ms = resetMs;
    }
  }
  return least < Infinity && !(least === 0 || throttled) ? undefined : ms;
}
