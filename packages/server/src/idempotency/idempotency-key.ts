const visible = /^[!-~]{1,255}$/;
/** A quoted string of a structured field (RFC 9651). Quotes and backslashes inside are escaped. */
const quoted = /^"(?:[ !#-[\]-~]|\\["\\])*"$/;
/** The usual form of a key, without quote, comma or backslash inside. Testing it first is fast. */
const usual = /^(?:"[!#-+\--[\]-~]{1,255}"|[!#-+\--[\]-~]{1,255})$/;

export function readKey(lines: readonly string[]): { readonly key: string } | 'missing' | 'invalid' {
  if (lines.length === 0) return 'missing';
  if (lines.length > 1) return 'invalid';
  const [given = ''] = lines;
  if (usual.test(given)) return { key: given.startsWith('"') ? given.slice(1, -1) : given };
  const line = given.trim();
  // A valid line has at most 255 characters, each with a backslash, plus two quotes and a few spaces.
  if (line.length > 520) return 'invalid';
  const isQuoted = quoted.test(line);
  const key = isQuoted ? line.slice(1, -1).replace(/\\(.)/g, '$1') : line;
  // A comma outside of quotes separates two keys, and only one is allowed.
  if (!isQuoted && /[",]/.test(line)) return 'invalid';
  return visible.test(key) ? { key } : 'invalid';
}
