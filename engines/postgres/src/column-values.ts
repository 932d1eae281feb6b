/** Of texts that came from outside, and must be stored whatever is in them: PostgreSQL knows neither NUL nor half a character. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/** JSON that PostgreSQL can take apart: it stores an escape that it cannot read, and fails when it is asked for it. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!unreadable.test(text)) return text;
  return JSON.stringify(value, (_, each) => (typeof each === 'string' ? storableText(each) : each));
}

const unreadable = /\\u(0000|d[89a-f])/;
