/** For texts from outside that must be stored whatever they contain: PostgreSQL accepts neither NUL nor lone surrogates. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/**
 * For texts that are only compared: unchanged, or as JSON if PostgreSQL could not store them. Different texts stay different.
 */
export function comparableText(text: string): string {
  return /[\0\\\ud800-\udfff]/.test(text) ? JSON.stringify(text) : text;
}

/** JSON that PostgreSQL can parse: it stores some escapes that it later fails to read. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!unreadable.test(text)) return text;
  return JSON.stringify(value, (_, each) => (typeof each === 'string' ? storableText(each) : each));
}

const unreadable = /\\u(0000|d[89a-f])/;
