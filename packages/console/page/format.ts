const units = [
  [864e5, 'd'],
  [36e5, 'h'],
  [6e4, 'm'],
  [1e3, 's'],
] as const;

/** Examples: `5 m 02 s`, `3 h 10 m`, `84 ms`. */
export function span(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 1000) return `${Math.round(value)} ms`;
  const index = units.findIndex(([each]) => value >= each);
  const [unitMs, unit] = units[index]!;
  const whole = Math.floor(value / unitMs);
  const smaller = units[index + 1];
  if (!smaller) return `${whole} ${unit}`;
  const rest = Math.floor((value - whole * unitMs) / smaller[0]);
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${String(rest).padStart(2, '0')} ${smaller[1]}`;
}

/** Example: `12,345`. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

export function percent(share: number, digits = 1): string {
  return `${(share * 100).toFixed(digits)} %`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

/** Returns only the end of a long id, because ids often start alike and differ at the end. */
export function shortId(id: string): string {
  return id.length > 13 ? id.slice(-12) : id;
}

/** Examples: `1 event`, `2 events`. */
export function many(count: number, one: string, more = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : more}`;
}

const numberWords = 'no one two three four five six seven eight nine ten eleven twelve'.split(' ');

/** Headlines show numbers up to twelve as words. */
export function inWords(count: number): string {
  return numberWords[count] ?? grouped(count);
}

export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
