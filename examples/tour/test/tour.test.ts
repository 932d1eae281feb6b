import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { price } from '../src/first-call.ts';

test('the first call of the README gets done on the third attempt', () => {
  expect(price).toBe('a lamp costs 12 EUR, said call 3');
});

test('the README shows exactly what the example does', async () => {
  const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
  const shown = /```ts\n(\/\/ A call that fails for a moment[\s\S]*?)```/.exec(readme)?.[1];
  const source = await readFile(new URL('../src/first-call.ts', import.meta.url), 'utf8');
  expect(shown).toBe(source);
});
