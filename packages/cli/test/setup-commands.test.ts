import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { commands } from '@holdfast/cli';
import { openSqlite } from '@holdfast/sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkNode } from '../src/doctor-checks.ts';
import { ask } from './run-holdfast.ts';

const run = promisify(execFile);
const modules = path.resolve(import.meta.dirname, '../../../node_modules');

async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-setup-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

describe('holdfast init', () => {
  test('writes a starter that runs as it is', { timeout: 60_000 }, async () => {
    const folder = path.join(await tempFolder(), 'My Shop');
    const { code, out } = await ask(['init', folder]);
    expect(code).toBe(0);
    expect(out).toContain('npm install && npm start');
    expect(JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'))).toMatchObject({
      name: 'my-shop',
      scripts: { start: 'node main.ts' },
    });
    await symlink(modules, path.join(folder, 'node_modules'));
    const started = await run(process.execPath, ['--conditions=holdfast-source', 'main.ts'], { cwd: folder });
    expect(started.stdout.match(/reserved a book for order/g)).toHaveLength(5);
    expect(started.stdout).toContain('shipping: done');
    const checked = await ask(['gateway', 'check', path.join(folder, 'gateway.yaml')]);
    expect(checked.code).toBe(0);
  });

  test('leaves what is there alone, unless it is told otherwise', async () => {
    const folder = await tempFolder();
    await writeFile(path.join(folder, 'client.ts'), 'mine');
    const refused = await ask(['init', folder]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('client.ts is there already') });
    expect(existsSync(path.join(folder, 'main.ts'))).toBe(false);
    expect((await ask(['init', folder, '--force'])).code).toBe(0);
    expect(await readFile(path.join(folder, 'client.ts'), 'utf8')).toContain('createFetch');
  });
});

describe('holdfast doctor', () => {
  test('says what is good and what is bad, with a remedy', async () => {
    const folder = await tempFolder();
    const store = path.join(folder, 'store.db');
    await (await openSqlite({ file: store })).close();
    const good = path.join(folder, 'policies.yaml');
    const bad = path.join(folder, 'gateway.yaml');
    await writeFile(good, 'policies: { payment: { attempts: 3 } }\n');
    await writeFile(bad, 'upstreams:\n  api: { instances: [http://127.0.0.1:1], retrys: 3 }\nroutes: []\n');
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, json } = await ask([
      ...['doctor', '--json', '--store', store, '--broker', `redis://127.0.0.1:${port}`],
      ...['--broker', 'kafka://127.0.0.1:1', '--broker', 'nonsense', '--port', String(port), good, bad],
    ]);
    expect(code).toBe(1);
    const states = json().map(({ name, state }) => [name, state]);
    expect(states).toEqual([
      ['Node', 'good'],
      ['store', 'good'],
      ['clock', 'good'],
      ['maintenance', 'unsure'],
      ['needs', 'good'],
      ['disk', 'good'],
      ['broker redis', 'good'],
      ['broker kafka', 'bad'],
      ['broker', 'bad'],
      [`port ${port}`, 'bad'],
      [good, 'good'],
      [bad, 'bad'],
    ]);
    expect(json().at(-1)).toMatchObject({ says: expect.stringContaining('retrys') });
  });

  test('a store that is not there is bad, and nothing is made in its place', async () => {
    const store = path.join(await tempFolder(), 'none.db');
    const { code, out } = await ask(['doctor', '--store', store]);
    expect(code).toBe(1);
    expect(out).toContain('there is no file');
    expect(existsSync(store)).toBe(false);
  });

  test('a file that is not there cannot be asked', async () => {
    const file = path.join(await tempFolder(), 'no.yaml');
    const { code, out } = await ask(['doctor', file]);
    expect(code).toBe(3);
    expect(out).toContain(`there is no file ${file}.`);
  });

  test('knows which Node is too old', () => {
    expect(checkNode('v20.20.2').state).toBe('bad');
    expect(checkNode('v22.18.0').state).toBe('bad');
    expect(checkNode('v22.19.0')).toMatchObject({ state: 'good', says: expect.stringContaining('kafka') });
    expect(checkNode('v24.6.0')).toMatchObject({ state: 'good', says: 'v24.6.0' });
  });

  test('refuses a port that is none', async () => {
    expect(await ask(['doctor', '--port', 'x'])).toMatchObject({
      code: 2,
      err: 'holdfast: --port: expected a number from 1 to 65535, got "x".\n',
    });
  });
});

describe('holdfast completion', () => {
  const completed = async (...words: string[]) => {
    const { out } = await ask(['completion', 'bash']);
    const typed = ['holdfast', ...words].map((word) => `'${word}'`).join(' ');
    const script = `${out}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
    expect(status).toBe(0);
    return stdout.split('\n').filter(Boolean);
  };

  test('completes words and flags in a real bash', async () => {
    expect(await completed('dl')).toEqual(['dlq']);
    expect(await completed('dlq', 're')).toEqual(['replay', 'replays']);
    expect(await completed('topics', 'pause', 'orders', '--fo')).toEqual(['--for']);
    const firsts = new Set(commands.map(({ name }) => name.split(' ')[0]));
    expect(new Set(await completed(''))).toEqual(firsts);
  });

  test('has a script for fish and zsh, and none for others', async () => {
    expect((await ask(['completion', 'fish'])).out).toContain("-a 'replay'");
    expect((await ask(['completion', 'zsh'])).out).toMatch(/^#compdef holdfast/);
    expect(await ask(['completion', 'bsh'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('did you mean "bash"?'),
    });
  });
});

test('on a Node that is too old, the command says so instead of failing on a missing function', () => {
  const older =
    "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })";
  const { status, stderr } = spawnSync(
    process.execPath,
    [`--import=data:text/javascript,${encodeURIComponent(older)}`, 'bin/holdfast.js', '--help'],
    { cwd: path.resolve(import.meta.dirname, '..'), encoding: 'utf8' },
  );
  expect([status, stderr]).toEqual([3, 'holdfast: needs Node 22.19 or newer, this is Node 20.20.2.\n']);
});

test.each(['99999', '-1', 'http'])('the console refuses the port %s in one sentence', async (port) => {
  const { code, err } = await ask(['console', `--port=${port}`, '--store', 'none.db']);
  expect([code, err.trim().split('\n').length]).toEqual([2, 1]);
  expect(err).toMatch(new RegExp(`^holdfast: --port: expected .*, got "${port}"\\.\n$`));
});
