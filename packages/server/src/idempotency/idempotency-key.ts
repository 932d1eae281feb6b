/** Visible ASCII, without the space. */
const visible = /^[!-~]{1,255}$/;
/** A string of a structured field: spaces may be in it, and a quote or a backslash is escaped. */
const quoted = /^"(?:[ !#-[\]-~]|\\["\\])*"$/;
/** What nearly everybody sends, with or without quotes. */
const usual = /^(?:"[!#-+\--[\]-~]{1,255}"|[!#-+\--[\]-~]{1,255})$/;

/** `missing`: there is none. `invalid`: it cannot be one, or there are several. */
export function readKey(lines: readonly string[]): { readonly key: string } | 'missing' | 'invalid' {
  if (lines.length === 0) return 'missing';
  if (lines.length > 1) return 'invalid';
  const [given = ''] = lines;
  if (usual.test(given)) return { key: given.startsWith('"') ? given.slice(1, -1) : given };
  // Longer than any key with every character escaped: not worth a look.
  const line = given.trim();
  if (line.length > 520) return 'invalid';
  const isQuoted = quoted.test(line);
  const key = isQuoted ? line.slice(1, -1).replace(/\\(.)/g, '$1') : line;
  // A list of two unquoted keys would be one with a comma in it; a key that begins like a string must be one.
  if (!isQuoted && /[",]/.test(line)) return 'invalid';
  return visible.test(key) ? { key } : 'invalid';
}
