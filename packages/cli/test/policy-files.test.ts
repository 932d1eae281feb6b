import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ask } from './run-holdfast.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const whole = path.join(folder, name);
  writeFileSync(whole, text);
  return whole;
}

test.each([
  ['many', 'policies: { pay: { attempts: 2 } }\n'],
  ['one', 'attempts: 2\n'],
])(
  'simulate tells a document of %s policies from a scenario, and names the flag for it',
  async (name, text) => {
    const policies = file(`${name}.yaml`, text);
    const says = `holdfast: ${policies} is a document of policies, and a scenario is needed; give the policies with --policy ${policies}.`;
    expect(await ask(['simulate', policies])).toMatchObject({ code: 2, err: expect.stringContaining(says) });
    expect(await ask(['tune', '--goal', 'success >= 50%', '--scenario', policies])).toMatchObject({
      code: 2,
      err: expect.stringContaining(says),
    });
  },
);

test('an assertion on a share above 1 is asked whether it is a percentage', async () => {
  expect(await ask(['simulate', 's03', '--assert', 'success > 99'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('got 99; did you mean success > 99%?'),
  });
});

test('lint can be asked about one policy of a file', async () => {
  const two = file('two.yaml', 'policies: { pay: { budget: false }, buy: { backoff: { jitter: none } } }\n');
  const { json } = await ask(['lint', two, '--policy', 'buy', '--json']);
  expect(new Set(json().map(({ policy }) => policy))).toEqual(new Set(['buy']));
  expect(await ask(['lint', two, '--policy', 'bux'])).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      `--policy: ${two} has no policy "bux"; it has pay, buy. Did you mean "buy"?`,
    ),
  });
});

test('lint finds that a file has no policies', async () => {
  const none = file('none.yaml', 'policies: {}\n');
  expect(await ask(['lint', none])).toMatchObject({
    code: 1,
    out: `${none}:1:11: error: policies: expected at least one policy, got none (document)\n`,
  });
});

test('lint refuses a method that is none', async () => {
  const pay = file('pay.yaml', 'attempts: 2\n');
  expect(await ask(['lint', pay, '--method', 'POTS'])).toMatchObject({
    code: 2,
    err: 'holdfast: --method: expected an HTTP method such as POST, got "POTS". Did you mean "POST"?\n',
  });
  expect((await ask(['lint', pay, '--method', 'XYZZY'])).code).toBe(2);
  expect((await ask(['lint', pay, '--method', 'get'])).code).toBeLessThan(2);
});
