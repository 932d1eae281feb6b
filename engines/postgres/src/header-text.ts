/**
 * These characters replace escapes that PostgreSQL refuses to read. The SQL function `header_of` uses the
 * same ones.
 */
const backslash = '\ue000';
const unicodeEscape = '\ue001';

export function toHeaderText(text: string): string {
  const json = JSON.stringify(text).replaceAll('\\\\', backslash).replaceAll('\\u', unicodeEscape);
  return JSON.parse(json) as string;
}

export function fromHeaderText(text: string): string {
  return text
    .replaceAll(/\ue001([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(backslash, '\\');
}
