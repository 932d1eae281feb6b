import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { run } from '../src/command.ts';
import { connect, readAll, tcpServer } from './loopback.ts';

function setup(files: Record<string, string> = {}, env: Record<string, string> = {}) {
  const lines: string[] = [];
  const complaints: string[] = [];
  const ready = Promise.withResolvers<string>();
  const end = Promise.withResolvers<void>();
  const terminal = {
    env,
    out(line: string) {
      lines.push(line);
      ready.resolve(line);
    },
    err: (line: string) => complaints.push(line),
    async readFile(name: string) {
      if (files[name] === undefined) throw new Error('no such file');
      return files[name];
    },
    ended: end.promise,
  };
  return { terminal, lines, complaints, ready: ready.promise, end: () => end.resolve() };
}

test('--help names every flag', async () => {
  const { terminal, lines } = setup();
  expect(await run(['--help'], terminal)).toBe(0);
  for (const flag of ['upstream', 'listen', 'control', 'spec', 'seed', 'token', 'json', 'help']) {
    expect(lines.join('\n')).toContain(`--${flag}`);
  }
});

describe('a wrong question exits with 2', () => {
  test.each([
    [[], '--upstream is needed: say "host:port".'],
    [['--upstream'], '--upstream needs a value, host:port.'],
    [['--upstream', 'nowhere'], '--upstream: expected an address such as "127.0.0.1:5432", got "nowhere".'],
    [['--upstrem', '1'], '--upstrem is not a flag; try --help.'],
    [['--toString'], '--toString is not a flag; try --help.'],
    [['5432'], '"5432" is not a flag; try --help.'],
    [['--json=yes', '--upstream=1'], '--json takes no value, got "yes".'],
    [
      ['--upstream=1', '--listen=1.2.3.4.5:x'],
      '--listen: expected an address such as "127.0.0.1:5432", got "1.2.3.4.5:x".',
    ],
    [
      ['--upstream=1', '--control=0.0.0.0:0'],
      '--control: expected an address of loopback, or a token, got "0.0.0.0:0".',
    ],
    [['--upstream=1', '--spec=gone.json'], '--spec gone.json cannot be read: no such file'],
    [['--upstream=1', '--spec=odd.json'], /^holdfast-chaos: --spec odd\.json is not JSON: /],
    [['--upstream=1', '--spec=bad.json'], '--spec: faults[0].rate: expected a number from 0 to 1, got 7.'],
  ])('%j', async (args, sentence) => {
    const { terminal, complaints, lines } = setup({
      'odd.json': '{',
      'bad.json': '{"faults":[{"kind":"hang","rate":7}]}',
    });
    expect(await run(args, terminal)).toBe(2);
    expect(complaints).toEqual([
      typeof sentence === 'string' ? `holdfast-chaos: ${sentence}` : expect.stringMatching(sentence),
    ]);
    expect(lines).toEqual([]);
  });
});

test('an address that cannot be had exits with 3', async () => {
  const { port } = await tcpServer(() => {});
  for (const flag of ['listen', 'control']) {
    const { terminal, complaints } = setup();
    expect(await run(['--upstream=1', `--${flag}=${port}`], terminal)).toBe(3);
    expect(complaints).toEqual([expect.stringContaining('EADDRINUSE')]);
  }
});

test('serves with the faults of the file and the token of the environment until it is ended', async () => {
  const { port } = await tcpServer((socket) => socket.pipe(socket));
  const { terminal, ready, end } = setup(
    { 'faults.json': '{"faults":[{"kind":"truncate","afterBytes":2}]}' },
    { HOLDFAST_CHAOS_TOKEN: 'secret' },
  );
  const running = run([`--upstream=${port}`, '--spec', 'faults.json', '--seed', 'x', '--json'], terminal);
  const { listen, upstream, control } = JSON.parse(await ready);
  expect(upstream).toBe(`127.0.0.1:${port}`);
  const client = connect(Number(listen.split(':')[1]));
  client.write('hello');
  expect((await readAll(client)).bytes.toString()).toBe('he');
  const url = `http://${control}/state`;
  expect((await fetch(url)).status).toBe(401);
  const state = await (await fetch(url, { headers: { authorization: 'Bearer secret' } })).json();
  expect(state.spec.seed).toBe('x');
  end();
  expect(await running).toBe(0);
});

describe('the process', () => {
  const root = path.resolve(import.meta.dirname, '../../..');
  const start = (...args: string[]) => {
    const child = spawn(
      process.execPath,
      ['--conditions=holdfast-source', path.join(import.meta.dirname, '../src/bin.ts'), ...args],
      { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    return child;
  };

  test.each(['SIGINT', 'SIGTERM'] as const)('ends cleanly on %s, with a connection open', async (signal) => {
    const { port } = await tcpServer((socket) => socket.pipe(socket));
    const child = start('--upstream', String(port), '--json');
    const [line] = await once(createInterface(child.stdout), 'line');
    const client = connect(Number(JSON.parse(line).listen.split(':')[1]));
    client.write('hello');
    await once(client, 'data');
    const all = readAll(client);
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([0, null]);
    await all;
  });

  test('says what is wrong on standard error', async () => {
    const child = start('--nope');
    const [[line], exit] = await Promise.all([
      once(createInterface(child.stderr), 'line'),
      once(child, 'exit'),
    ]);
    expect(line).toBe('holdfast-chaos: --nope is not a flag; try --help.');
    expect(exit).toEqual([2, null]);
  });
});
