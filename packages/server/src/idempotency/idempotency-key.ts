const visible = /^[!-~]{1,255}$/;
/** A quoted string of a structured field (RFC 9651). Quotes and backslashes inside are escaped. */
const quoted = /^"(?:[ !#-[\]-~]|\\["\\])*"$/;
/** The usual form of a key: no quote, comma or backslash inside. It is tested first, because that is fast. */
const usual = /^(?:"[!#-+\--[\]-~]{1,255}"|[!#-+\--[\]-~]{1,255})$/;

/**
 * Reads the idempotency key from all lines of the header. A malformed key, or more than one key, is
 * `invalid`.
 */
export function readKey(lines: readonly string[]): { readonly key: string } | 'missing' | 'invalid' {
  if (lines.length === 0) return 'missing';
  if (lines.length > 1) return 'invalid';
  const [given = ''] = lines;
  if (usual.test(given)) return { key: given.startsWith('"') ? given.slice(1, -1) : given };
  const line = given.trim();
  // A valid line is shorter than 520 characters: 255 characters, each with a backslash, plus two quotes and a
  // few spaces.
  if (line.length > 520) return 'invalid';
  const isQuoted = quoted.test(line);
  const key = isQuoted ? line.slice(1, -1).replace(/\\(.)/g, '$1') : line;
  // A comma outside of quotes separates two keys, and only one is allowed. Quotes are allowed only around the
  // whole key.
  if (!isQuoted && /[",]/.test(line)) return 'invalid';
  return visible.test(key) ? { key } : 'invalid';
}
