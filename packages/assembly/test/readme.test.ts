import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const readme = readFileSync(path.join(import.meta.dirname, '../README.md'), 'utf8');

test('the test in the README runs', async () => {
  const [, program = ''] = /^## Tests$[\s\S]*?^```ts\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  const folder = mkdtempSync(path.join(import.meta.dirname, '.readme-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'remind.ts');
  writeFileSync(file, program);
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=holdfast-source', file], {
    timeout: 30_000,
  });
  expect(stdout).toContain('reminds after a day');
  expect(stdout).toMatch(/^\S+ pass 1$/m);
}, 40_000);
