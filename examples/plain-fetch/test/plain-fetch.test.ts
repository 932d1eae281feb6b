import { expect, test } from 'vitest';
import { printedInReadme, startExample } from '../../../scripts/examples/start-example.ts';

test('repeats what may be repeated, and prints what the README shows', async () => {
  const example = await startExample('plain-fetch');
  expect(await example.ended).toBe(0);
  expect(example.output()).toBe(await printedInReadme('plain-fetch'));
});
