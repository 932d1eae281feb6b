/** 140,000 years: from now on, and twice over, a `bigint` and a JavaScript number hold it exactly. */
const spanMaxMs = 2 ** 52;

/** A time, or a span of it, as a `bigint` can hold it: what never ends has to end somewhere. */
export function boundedMs(ms: number): number {
  return Math.max(-spanMaxMs, Math.min(ms, spanMaxMs));
}

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
