/** Origins by the start of the URL, so that a URL is parsed once for each. */
const origins = new Map<string, string>();
const originsMax = 1000;
/** The latest lookup: most callers have one origin, and a comparison is cheaper than hashing a new string. */
let lastUrl = '\0';
let lastStart = '\0';
let lastOrigin = '';

/** The origin of an absolute http or https URL; undefined for all others. */
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
  // Cached only where the start ends with host and port: then all URLs with this start have the same origin.
  if (/^https?:\/\/[\w.:-]+$/i.test(start)) {
    if (origins.size >= originsMax) origins.clear();
    origins.set(start, origin);
  }
  return origin;
}
