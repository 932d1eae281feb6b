/** A cache of origins. The key is the part of a URL before its path, such as `https://api.example.com`. */
const origins = new Map<string, string>();
const originsMax = 1000;
/**
 * The result of the latest lookup. Most callers use only one origin, and comparing two strings is cheaper
 * than a Map lookup.
 */
let lastUrl = '\0';
let lastStart = '\0';
let lastOrigin = '';

/** Returns the origin of an absolute http or https URL; undefined for all other URLs. */
export function originOf(url: string): string | undefined {
  if (url === lastUrl) return lastOrigin;
  const end = url.indexOf('/', 8);
  const start = end < 0 ? url : url.slice(0, end);
  if (start === lastStart) return lastOrigin;
  const known = origins.get(start);
  if (known !== undefined) {
    lastUrl = url;
    lastStart = start;
    lastOrigin = known;
    return known;
  }
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  // Cache a start only if it has nothing but scheme, host and port: all URLs with such a start have the same
  // origin.
  if (/^https?:\/\/[\w.:-]+$/i.test(start)) {
    if (origins.size >= originsMax) origins.clear();
    origins.set(start, origin);
  }
  return origin;
}
