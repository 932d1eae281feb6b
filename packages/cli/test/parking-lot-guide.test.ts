import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parkedStore } from './parked-store.ts';
import { ask } from './run-holdfast.ts';

const guide = path.resolve(import.meta.dirname, '../../../docs/guides/parking-lot.md');

/** The words of a command line, as a shell reads them. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}

test('every command of the guide does what the guide says, from the top to the end', async () => {
  const { file } = await parkedStore(40);
  const text = await readFile(guide, 'utf8');
  const lines = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.trim().split('\n'));
  expect(lines.length).toBeGreaterThan(10);
  for (const line of lines) {
    const [npx, program, ...args] = wordsOf(line);
    expect([npx, program]).toEqual(['npx', 'holdfast']);
    const { code, err } = await ask(args, { HOLDFAST_STORE: file });
    // 1 is bad news (`status` finds parked events), and no wrong question.
    expect([0, 1], `${line}: ${err}`).toContain(code);
  }
});
