import { execFile } from 'node:child_process';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './command.ts';

/** Runs `npm run storm` without npm. */
function storm(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const script = path.join(root, 'scripts/storm.ts');
  const flags = ['--conditions=holdfast-source', '--no-warnings', script, ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, flags, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

describe('npm run storm', () => {
  test('runs a storm by its name, however it is written', async () => {
    const { code, out } = await storm('--only', 's14', '--policy', 'holdfast', '--seeds', '1', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ scenarios: [{ id: 'S14', pass: true }] });
  });

  test('does not pass where nothing was run', async () => {
    expect(await storm('--only', 's99', '--json')).toEqual({
      code: 2,
      out: '',
      err: 'There is no storm "s99" with a policy "": nothing was run.\n',
    });
    expect((await storm('--only', 's14', '--policy', 'nobody')).code).toBe(2);
  });

  test('says which option it does not know', async () => {
    const { code, err } = await storm('--seed', '1');
    expect([code, err]).toEqual([2, expect.stringMatching(/^Unknown option '--seed'[^\n]*\n$/)]);
  });
});
