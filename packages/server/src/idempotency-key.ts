/** Visible ASCII, without the space. */
const visible = /^[!-~]{1,255}$/;
/** A string of a structured field: spaces may be in it, and a quote or a backslash is escaped. */
const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/** `missing`: there is none. `invalid`: it cannot be one, or there are several. */
export function readKey(lines: readonly string[]): { readonly key: string } | 'missing' | 'invalid' {
  if (lines.length === 0) return 'missing';
  if (lines.length > 1) return 'invalid';
  // Longer than any key with every character escaped: not worth a look.
  const line = lines[0]!.trim();
  if (line.length > 520) return 'invalid';
  const [, inside] = quoted.exec(line) ?? [];
  const key = inside === undefined ? line : inside.replace(/\\(.)/g, '$1');
  // A list of two unquoted keys would be one with a comma in it; a key that begins like a string must be one.
  if (inside === undefined && /[",]/.test(line)) return 'invalid';
  return visible.test(key) ? { key } : 'invalid';
}
