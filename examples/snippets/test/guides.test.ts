import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';

const root = path.join(import.meta.dirname, '../../..');
const guides = path.join(root, 'docs/guides');
const source = path.join(root, 'examples/snippets/src/guides');

const [postgres, redis, nats, rabbitmq] = await Promise.all([
  service('postgres'),
  service('redis'),
  service('nats'),
  service('rabbitmq'),
]);

const names = globSync('*', { cwd: source }).sort();
const pageOf = (name: string) => readFileSync(path.join(guides, `${name}.md`), 'utf8');

/** The blocks of a page, in order: what is in them, and in which language. */
function blocksOf(page: string): { language: string; text: string }[] {
  return Array.from(page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language, text]) => ({
    language: language!,
    text: text!,
  }));
}

describe.each(names)('the guide %s', (name) => {
  const filesOf = () => globSync('**/*.*', { cwd: path.join(source, name) });

  test('shows each program and file as it is run, and no other', () => {
    const shown = blocksOf(pageOf(name)).filter(({ language }) => ['ts', 'yaml'].includes(language));
    const files = filesOf().map((file) => readFileSync(path.join(source, name, file), 'utf8'));
    expect(shown.map(({ text }) => text).sort()).toEqual(files.sort());
  });

  test('names each file that a reader has to save', () => {
    for (const file of filesOf()) expect(pageOf(name)).toContain(`\`${file}\``);
  });

  test('is short', () => {
    expect(pageOf(name).trimEnd().split('\n').length).toBeLessThanOrEqual(110);
  });
});

/** What differs from run to run, in the output and in the page alike. */
function withoutChance(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'DATE')
    .replace(/\b[\d.]+ m?s\b/g, 'TIME')
    .replace(/\b[0-9a-f]{8}(-?[0-9a-f]{4,})*\b/g, 'ID')
    .replace(/ +/g, ' ')
    .replace(/\d+ healthy/g, 'PID healthy')
    .replace(/ $/gm, '')
    .replace(/\n*$/, '\n');
}

/** Whether lines are those of the page, where a line with `…` alone stands for any. */
function asShown(text: string): RegExp {
  const parts = withoutChance(text)
    .split(/^…\n/m)
    .map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join('(?:.*\n)*')}$`);
}

interface Rehearsal {
  /** A command of the text, which prints something and goes on. It is started before a block, in the place of all that run. */
  readonly beside?: { readonly command: string; readonly prints: string; readonly before: string };
  /** Commands that go on: they are stopped at the end. */
  readonly goesOn?: readonly string[];
  /** Commands that end with 1. */
  readonly failing?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Addresses of the page, and those that are used instead. */
  readonly instead?: Readonly<Record<string, string>>;
}

/** Does what a reader would do: saves the files, types each command, and compares what is printed with the page. */
async function rehearse(
  name: string,
  { beside, goesOn = [], failing = [], env = {}, instead = {} }: Rehearsal = {},
) {
  const folder = workshop(name);
  const running: Running[] = [];
  const swapped = (text: string) =>
    Object.entries(instead).reduce((all, [from, to]) => all.replaceAll(from, to), text);
  const blocks = blocksOf(pageOf(name));
  let rehearsed = 0;
  for (const [index, { language, text }] of blocks.entries()) {
    if (language !== 'sh' || text.startsWith('npm ')) continue;
    const next = blocks[index + 1];
    const expected = next?.language === 'text' ? asShown(swapped(next.text)) : undefined;
    if (beside && text.startsWith(beside.before)) {
      for (const command of running.splice(0)) expect(await command.stop()).toBe(0);
      expect(pageOf(name)).toContain(`\`${beside.command}\` prints \`${beside.prints}\``);
      const other = start(beside.command, folder, env);
      await expect.poll(other.output, { timeout: 15_000 }).toBe(`${beside.prints}
`);
    }
    const command = start(swapped(text), folder, env);
    const seen = () => withoutChance(command.output());
    if (goesOn.includes(text.trim())) {
      running.push(command);
      await expect.poll(seen, { timeout: 15_000, message: text }).toMatch(expected!);
    } else {
      expect(await command.ended, `${text}${command.output()}`).toBe(failing.includes(text.trim()) ? 1 : 0);
      if (expected) expect(seen(), text).toMatch(expected);
    }
    rehearsed++;
  }
  for (const command of running) expect(await command.stop()).toBe(0);
  return rehearsed;
}

/** A folder with the files of a guide, inside the workspace, so that packages are found from there. */
function workshop(name: string): string {
  const folder = mkdtempSync(path.join(root, 'examples/snippets/.guides-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(path.join(source, name), folder, { recursive: true });
  const bin = path.join(folder, '.bin');
  mkdirSync(bin);
  const node = `exec '${process.execPath}' --conditions=holdfast-source --no-warnings`;
  const main = path.join(root, 'packages/cli/src/main.ts');
  writeFileSync(path.join(bin, 'node'), `#!/bin/sh\n${node} "$@"\n`, { mode: 0o755 });
  writeFileSync(path.join(bin, 'holdfast'), `#!/bin/sh\n${node} '${main}' "$@"\n`, { mode: 0o755 });
  // `npx` takes a program of `node_modules`, which is the same as that of the path here.
  writeFileSync(path.join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  return folder;
}

interface Running {
  output(): string;
  readonly ended: Promise<number | null>;
  /** Ctrl-C, and then the exit code. */
  stop(): Promise<number | null>;
}

function start(text: string, cwd: string, env: Readonly<Record<string, string>>): Running {
  const child = spawn('sh', ['-c', text.trim().includes('\n') ? `set -e\n${text}` : `exec env ${text}`], {
    cwd,
    env: {
      ...process.env,
      ...env,
      PATH: `${path.join(cwd, '.bin')}:${process.env.PATH}`,
      NO_COLOR: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(() => void child.kill('SIGKILL'));
  const stop = () => {
    child.kill('SIGINT');
    return ended;
  };
  return { output: () => output, ended, stop };
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return String(port);
}

describe('what a reader types and sees', { timeout: 60_000 }, () => {
  test.each([
    ['protect-a-fetch', 2],
    ['make-a-post-safe', 1],
    ['consume-events', 2],
    ['write-an-assembly', 3],
    ['tune-with-the-simulator', 4],
  ])('%s', async (name, commands) => {
    expect(await rehearse(name, { failing: ['CRASH=1 node place-order.ts'] })).toBe(commands);
  });

  test('protect-a-fetch: the call ends when the customer leaves', async () => {
    const leaving = start('node leave.ts', workshop('protect-a-fetch'), {});
    expect(await leaving.ended).toBe(0);
    expect(pageOf('protect-a-fetch')).toContain(`\`node leave.ts\` prints \`${leaving.output().trim()}\``);
  });

  test('make-a-post-safe: a second run places one more order, and not that of the basket', async () => {
    const folder = workshop('make-a-post-safe');
    expect(await start('node order.ts', folder, {}).ended).toBe(0);
    const again = start('node order.ts', folder, {});
    expect(await again.ended).toBe(0);
    const last = again.output().trim().split('\n').at(-1);
    expect(pageOf('make-a-post-safe')).toContain(`it ends with \`${last}\``);
  });

  test('survive-your-clients', async () => {
    const port = await freePort();
    const rehearsed = await rehearse('survive-your-clients', {
      goesOn: ['node server.ts'],
      env: { PORT: port },
      instead: { 'localhost:3000': `127.0.0.1:${port}` },
    });
    expect(rehearsed).toBe(3);
  });

  test('put-the-gateway-in-front', async () => {
    const [legacy, gateway, admin] = [await freePort(), await freePort(), await freePort()];
    const rehearsed = await rehearse('put-the-gateway-in-front', {
      beside: { command: 'node legacy.ts', prints: 'ready', before: 'npx holdfast gateway check' },
      goesOn: ['npx holdfast gateway gateway.yaml'],
      env: { LEGACY_PORT: legacy, GATEWAY_PORT: gateway, ADMIN_PORT: admin },
      instead: {
        ':3000': `:${legacy}`,
        ':8080': `:${gateway}`,
        ':9901': `:${admin}`,
        'localhost:': '127.0.0.1:',
      },
    });
    expect(rehearsed).toBe(4);
  });

  test('move-to-another-engine', async () => {
    const rehearsed = await rehearse('move-to-another-engine', {
      goesOn: ['node shipping.ts orders.db order-1 order-2 order-3'],
      beside: {
        command: 'ADDRESS=known node shipping.ts orders.db',
        prints: 'shipping reads from sqlite',
        before: 'npx holdfast topics show',
      },
    });
    expect(rehearsed).toBe(3);
  });
});

describe('one-policy-many-services', { timeout: 60_000 }, () => {
  test('what a reader types and sees', async () => {
    expect(await rehearse('one-policy-many-services', { goesOn: ['node checkout.ts'] })).toBe(3);
  });

  test('a changed file is in force, and one with a mistake changes nothing', async () => {
    const folder = workshop('one-policy-many-services');
    const file = path.join(folder, 'config/policies.yaml');
    const text = readFileSync(file, 'utf8');
    const checkout = start('node checkout.ts', folder, {});
    await expect.poll(checkout.output, { timeout: 15_000 }).toContain('the order is paid');
    writeFileSync(file, text.replace('attempts: 3', 'attempts: 2'));
    await expect.poll(checkout.output, { timeout: 15_000 }).toContain('config/policies.yaml is in force');
    writeFileSync(file, text.replace('attempts: 3', 'attempts: two'));
    await expect
      .poll(checkout.output, { timeout: 15_000 })
      .toMatch(
        /The policies stay as they are\. .*config\/policies\.yaml:2:39: policies\.payments\.attempts: /,
      );
    expect(await checkout.stop()).toBe(0);
  });
});

describe('the consumer of move-to-another-engine', { timeout: 60_000 }, () => {
  for (const [name, server] of Object.entries({ postgres, redis, nats, rabbitmq })) {
    test.skipIf(server.missing)(titled(`reads from ${name}`, server), async () => {
      const url = server.missing === undefined ? server.url : '';
      const folder = workshop('move-to-another-engine');
      const shipping = start(`node shipping.ts ${url} order-4 order-5`, folder, {});
      const lines = () => shipping.output().trim().split('\n').sort();
      const shipped = ['order-4 shipped', 'order-5 shipped', `shipping reads from ${name}`];
      await expect.poll(lines, { timeout: 30_000 }).toEqual(shipped);
      expect(await shipping.stop()).toBe(0);
    });
  }
});

test('tune-with-the-simulator: the gate says which bound the first policy breaks', async () => {
  const gate = start(
    "holdfast simulate checkout.yaml --policy policies.yaml --assert 'recovery < 10s'",
    workshop('tune-with-the-simulator'),
    {},
  );
  expect(await gate.ended).toBe(1);
  const [sentence] = /checkout: expected .*/.exec(gate.output())!;
  expect(pageOf('tune-with-the-simulator')).toContain(sentence);
});
