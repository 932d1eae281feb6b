/** All forms of headers that `fetch` and undici accept. */
export type OutgoingHeaders =
  | Iterable<readonly [string, string | readonly string[] | undefined]>
  | readonly string[]
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | null
  | undefined;

/**
 * Copies headers that are an iterator into name–value pairs, because an iterator can be read only once.
 * Returns undefined for headers of another form.
 */
export function pairsOf(headers: OutgoingHeaders): [string, string][] | undefined {
  if (typeof (headers as Partial<Iterator<unknown>> | null | undefined)?.next !== 'function')
    return undefined;
  return [...(headers as Iterable<[string, string]>)];
}

/** Returns the value of a header. `name` must be in lower case. */
export function headerIn(headers: OutgoingHeaders, name: string): string | undefined {
  if (!headers) return undefined;
  if (isFlat(headers)) {
    for (let index = 0; index < headers.length; index += 2) {
      if (isNamed(headers[index] as string, name)) return headers[index + 1];
    }
    return undefined;
  }
  if (Symbol.iterator in headers) {
    for (const [each, value] of headers as Iterable<readonly [string, string]>) {
      if (isNamed(each, name)) return String(value);
    }
    return undefined;
  }
  for (const each in headers) {
    if (isNamed(each, name)) {
      const value = (headers as Readonly<Record<string, unknown>>)[each];
      return value === undefined ? undefined : String(value);
    }
  }
  return undefined;
}

/** Returns a copy of `headers` with the headers in `more` added, in a form that `fetch` and undici accept. */
export function withHeaders(
  headers: OutgoingHeaders,
  more: Readonly<Record<string, string>>,
): Record<string, string> | string[] | [string, string][] {
  if (!headers) return more as Record<string, string>;
  if (isFlat(headers)) return [...headers, ...Object.entries(more).flat()];
  if (Symbol.iterator in headers) {
    return [...(headers as Iterable<[string, string]>), ...Object.entries(more)];
  }
  return { ...(headers as Record<string, string>), ...more };
}

export function isPairs(headers: ReturnType<typeof withHeaders>): headers is [string, string][] {
  return Array.isArray(headers) && Array.isArray(headers[0]);
}

/**
 * Returns true if the headers are one flat list: `[name, value, name, value]`. Only undici accepts this form.
 */
function isFlat(headers: NonNullable<OutgoingHeaders>): headers is readonly string[] {
  return Array.isArray(headers) && !Array.isArray(headers[0]);
}

function isNamed(given: string, name: string): boolean {
  return given === name || (given.length === name.length && given.toLowerCase() === name);
}
