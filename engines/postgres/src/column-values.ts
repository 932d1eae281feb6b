/**
 * Replaces NUL and lone surrogates, which PostgreSQL refuses. Use it for texts that must be stored, such as
 * error messages.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/**
 * Returns a text that PostgreSQL accepts: JSON, if the text has NUL, a backslash or surrogates. Different
 * texts stay different.
 */
export function comparableText(text: string): string {
  return /[\0\\\ud800-\udfff]/.test(text) ? JSON.stringify(text) : text;
}

/** Returns JSON without the escapes that PostgreSQL stores but cannot read later. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!unreadable.test(text)) return text;
  return JSON.stringify(value, (_, each) => (typeof each === 'string' ? storableText(each) : each));
}

const unreadable = /\\u(0000|d[89a-f])/;
