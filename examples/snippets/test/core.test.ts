import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { transient } from 'holdfast';
import { expect, test } from 'vitest';
import { balanceOf, charge, tryToCharge, whyItStopped } from '../src/core-calls.ts';
import { search } from '../src/core-parts.ts';
import { threeAttempts } from '../src/core-testing.ts';

const root = path.join(import.meta.dirname, '../../..');

test.each(['core-calls', 'core-parts', 'core-testing'])('the README shows %s as it is run', async (name) => {
  const readme = await readFile(path.join(root, 'packages/core/README.md'), 'utf8');
  const source = await readFile(path.join(root, `examples/snippets/src/${name}.ts`), 'utf8');
  expect(readme).toContain(`\`\`\`ts\n${source}\`\`\`\n`);
});

test('a charge that may have happened is not repeated, and the story says so', async () => {
  const lost = transient(new Error('connection lost'));
  let calls = 0;
  const error = await charge(async () => {
    calls++;
    throw lost;
  }).catch((given: unknown) => given);
  expect([error, calls, whyItStopped(error)]).toEqual([lost, 1, 'not_idempotent']);
  expect(await charge(async (signal) => (signal.aborted ? 'late' : 'paid'))).toBe('paid');
});

test('try tells, and wrap keeps the function', async () => {
  expect(await tryToCharge(async () => 'paid')).toBe('paid');
  expect(await tryToCharge(() => Promise.reject(new TypeError('no such card')))).toContain('no such card');
  expect(await balanceOf('ann')).toBe('ann owes nothing');
});

test('a policy of few parts', async () => {
  await expect(search.run(() => 'found')).resolves.toBe('found');
  expect(Object.keys(search.settings)).not.toContain('budget');
});

test('three attempts on a virtual clock', async () => {
  expect(await threeAttempts()).toEqual(['placed', [1, 2, 3]]);
});
