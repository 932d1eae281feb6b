import { readFileSync } from 'node:fs';

/** `package.json` is in the folder above `src` or `dist`. */
export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
