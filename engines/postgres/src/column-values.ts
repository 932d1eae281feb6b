/**
 * Replaces NUL and lone surrogates, which PostgreSQL does not accept. For texts such as error messages, which must be
 * stored whatever they contain.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/**
 * Returns the text, or its JSON if PostgreSQL could not store it. Different texts stay different, so the result can be
 * compared but not shown.
 */
export function comparableText(text: string): string {
  return /[\0\\\ud800-\udfff]/.test(text) ? JSON.stringify(text) : text;
}

/**
 * Returns JSON that PostgreSQL can parse. Without the replacement it would store some escapes that it later fails to
 * read.
 */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!unreadable.test(text)) return text;
  return JSON.stringify(value, (_, each) => (typeof each === 'string' ? storableText(each) : each));
}

const unreadable = /\\u(0000|d[89a-f])/;
