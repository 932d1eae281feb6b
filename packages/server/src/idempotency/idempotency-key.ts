/** Visible ASCII, without the space. */
const visible = /^[!-~]{1,255}$/;
/** A string of a structured field (RFC 9651): it may contain spaces, and quotes and backslashes are escaped. */
const quoted = /^"(?:[ !#-[\]-~]|\\["\\])*"$/;
/** The usual form, with or without quotes: without a quote, comma or backslash inside. */
const usual = /^(?:"[!#-+\--[\]-~]{1,255}"|[!#-+\--[\]-~]{1,255})$/;

/** `missing`: there is no key. `invalid`: it is not a valid key, or there are several. */
export function readKey(lines: readonly string[]): { readonly key: string } | 'missing' | 'invalid' {
  if (lines.length === 0) return 'missing';
  if (lines.length > 1) return 'invalid';
  const [given = ''] = lines;
  if (usual.test(given)) return { key: given.startsWith('"') ? given.slice(1, -1) : given };
  const line = given.trim();
  // 255 escaped characters, two quotes, and some spaces fit into 520.
  if (line.length > 520) return 'invalid';
  const isQuoted = quoted.test(line);
  const key = isQuoted ? line.slice(1, -1).replace(/\\(.)/g, '$1') : line;
  // An unquoted comma means two keys, and a quote is allowed only around a whole key.
  if (!isQuoted && /[",]/.test(line)) return 'invalid';
  return visible.test(key) ? { key } : 'invalid';
}
