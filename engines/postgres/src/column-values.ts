/** Of texts that came from outside, and must be stored whatever is in them: PostgreSQL knows neither NUL nor half a character. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/**
 * Of texts that are only ever compared, so that any text can be one: as it is, or, where PostgreSQL could not keep it, as JSON. No two
 * texts become the same.
 */
export function comparableText(text: string): string {
  return /[\0\\\ud800-\udfff]/.test(text) ? JSON.stringify(text) : text;
}

/** JSON that PostgreSQL can take apart: it stores an escape that it cannot read, and fails when it is asked for it. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!unreadable.test(text)) return text;
  return JSON.stringify(value, (_, each) => (typeof each === 'string' ? storableText(each) : each));
}

const unreadable = /\\u(0000|d[89a-f])/;
