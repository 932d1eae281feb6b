import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { capture, root, script } from './command.ts';
import {
  firstExample,
  importedPackages,
  installed,
  installLines,
  packAll,
  publishedPackages,
  written,
} from './installed-packages.ts';
import { freePort } from './services/free-port.ts';
import { ownService, service, titled } from './services/service.ts';

const packages = publishedPackages();
const oldestNode = '>=22.19';
/** Entries for frameworks that a user has already. */
const needsPeer = /\/(express|fastify|hono|otel)$/;
/** Of examples on servers that other tests use as well. */
const topic = `orders-${randomUUID().slice(0, 8)}`;
const nodeTypes = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).devDependencies[
  '@types/node'
];

if (packages.some(({ folder }) => !existsSync(path.join(root, folder, 'dist/index.js'))))
  await capture(script('scripts/build.ts'));
const tarballs = await packAll(packages);

// All packages together, the oldest Node that they promise, and the core alone.
const [user, oldest, coreOnly] = await Promise.all([
  installed([...tarballs.values(), `@types/node@${nodeTypes}`]),
  installed(['node@22.19.0'], { scripts: true }),
  installed([tarballs.get('holdfast')!]),
]);
const missing = user.missing ?? oldest.missing ?? coreOnly.missing;

// Examples on a server share it with other tests only where it takes seconds to start.
const servers = missing === undefined ? await startServers() : {};
const ports = new Map<string, string>();
for (const port of ['3000', '7070', '8080', '9901']) ports.set(port, String(await freePort()));

afterAll(async () => {
  for (const each of [user, oldest, coreOnly]) if (each.missing === undefined) each.remove();
  rmSync(path.dirname([...tarballs.values()][0]!), { recursive: true, force: true });
  for (const each of Object.values(servers)) await each.stop?.();
});

interface ExampleServer {
  readonly url?: string;
  readonly missing?: string;
  stop?(): Promise<void>;
}

/** By the address that a README has for it. */
async function startServers(): Promise<Record<string, ExampleServer>> {
  const [redis, nats, postgres] = await Promise.all([
    ownService('redis'),
    ownService('nats'),
    ownService('postgres'),
  ]);
  const [kafka, rabbitmq, elasticmq] = await Promise.all([
    service('kafka'),
    service('rabbitmq'),
    service('elasticmq'),
  ]);
  return {
    'redis://localhost:6379': redis,
    'nats://localhost:4222': nats,
    'postgres://postgres@localhost:5432/postgres': postgres,
    'kafka://localhost:9092': { ...kafka, stop: async () => {} },
    'amqp://guest:guest@localhost:5672': { ...rabbitmq, stop: async () => {} },
    'http://localhost:9324': { ...elasticmq, stop: async () => {} },
  } as Record<string, ExampleServer>;
}

describe('the README of', () => {
  test.each(packages)('$name has an example that says what it prints', ({ name, readme }) => {
    if (name === '@holdfast/cli') return expect(readme).toContain('npx holdfast doctor');
    expect(firstExample(readme)).toBeDefined();
  });

  test.each(packages)('$name names what to install: itself and all that its example imports', (each) => {
    const [first = []] = installLines(each.readme);
    const imported = importedPackages(firstExample(each.readme)?.code ?? '');
    expect(new Set([...first])).toEqual(new Set([each.name, ...imported]));
  });

  const pages = globSync(['README.md', 'docs/**/*.md', '{packages,engines,examples}/*/README.md'], {
    cwd: root,
  });
  const known = new Set([...tarballs.keys(), ...dependenciesOfRepository()]);
  test.each(pages)('%s installs only packages that exist', (page) => {
    const named = installLines(readFileSync(path.join(root, page), 'utf8')).flat();
    expect(named.filter((name) => !known.has(name.replace(/(?<=.)@.*$/, '')))).toEqual([]);
  });
});

function dependenciesOfRepository(): string[] {
  const manifests = globSync(
    ['package.json', '{packages,engines,examples}/*/package.json', 'bench/package.json'],
    {
      cwd: root,
    },
  );
  return manifests.flatMap((file) => {
    const {
      dependencies = {},
      devDependencies = {},
      peerDependencies = {},
    } = JSON.parse(readFileSync(path.join(root, file), 'utf8'));
    return Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies });
  });
}

describe.skipIf(missing)(titled('installed from their tarballs', { missing }), () => {
  test('holdfast brings nothing along', () => {
    const folders = readdirSync(path.join(coreOnly.folder!, 'node_modules'));
    expect(folders.filter((name) => !name.startsWith('.'))).toEqual(['holdfast']);
  });

  describe.each([
    ['24', () => process.execPath],
    ['22.19', () => path.join(oldest.folder!, 'node_modules/node/bin/node')],
  ] as const)('on Node %s', (version, node) => {
    const fitting = packages.filter((each) => version === '24' || each.node === oldestNode);

    test('every entry can be imported', async () => {
      const entries = fitting.flatMap((each) => each.entries).filter((entry) => !needsPeer.test(entry));
      const code = `for (const entry of ${JSON.stringify(entries)}) console.log(entry, typeof (await import(entry)));`;
      const folder = written(path.join(user.folder!, `entries-${version}`), { 'entries.ts': code });
      expect(await run(node(), folder, 'entries.ts')).toEqual({
        ended: 0,
        printed: entries.map((entry) => `${entry} object\n`).join(''),
        complaints: '',
      });
    });

    test('the command holdfast starts', async () => {
      const bin = path.join(user.folder!, 'node_modules/@holdfast/cli/bin/holdfast.js');
      const { ended, printed } = await run(node(), user.folder!, bin, ['doctor']);
      expect({ ended, printed }).toEqual({ ended: 0, printed: expect.stringMatching(/^ok {3}Node: v/) });
    });

    for (const each of packages.filter(({ readme }) => firstExample(readme))) {
      const { code, files, prints, waits } = firstExample(each.readme)!;
      const [address] = Object.keys(servers).filter((known) => code.includes(known));
      const server: ExampleServer = address === undefined ? {} : servers[address]!;
      const unfit = fitting.includes(each) ? server.missing : `it says that it needs Node ${each.node}`;

      test.skipIf(unfit)(
        titled(`the first example of ${each.name} runs`, { missing: unfit }),
        async () => {
          const here = (text: string) =>
            placed(text, address, server.url, `${topic}-${version.replace('.', '-')}`);
          const folder = written(path.join(user.folder!, `${path.basename(each.folder)}-${version}`), {
            'example.ts': here(code),
            ...Object.fromEntries([...files].map(([name, text]) => [name, here(text)])),
          });
          const { ended, printed, complaints } = await run(
            node(),
            folder,
            'example.ts',
            [],
            waits ? here(prints) : undefined,
          );
          expect({ printed, complaints }).toEqual({
            printed: expect.stringContaining(here(prints)),
            complaints: '',
          });
          // Without a listener of its own, Ctrl-C ends a process by the signal.
          const endsByItself = !waits || /drainOnSignals|gracefulShutdown/.test(code);
          expect(ended).toBe(endsByItself ? 0 : 'SIGINT');
        },
        60_000,
      );
    }
  });

  test.each(['bundler', 'nodenext'])(
    'every entry and first example compiles with moduleResolution %s',
    async (resolution) => {
      const entries = packages.flatMap((each) => each.entries).filter((entry) => !needsPeer.test(entry));
      const examples = packages.flatMap(({ folder, readme }) => {
        const code = firstExample(readme)?.code;
        return code === undefined ? [] : [[`${path.basename(folder)}.ts`, code] as const];
      });
      const folder = written(path.join(user.folder!, `types-${resolution}`), {
        'entries.ts': entries.map((entry, index) => `export * as entry${index} from '${entry}';`).join('\n'),
        ...Object.fromEntries(examples),
        'tsconfig.json': JSON.stringify({
          compilerOptions: {
            module: resolution === 'bundler' ? 'preserve' : 'nodenext',
            moduleResolution: resolution,
            moduleDetection: 'force',
            target: 'es2023',
            lib: ['es2023', 'dom', 'dom.iterable'],
            types: ['node'],
            strict: true,
            skipLibCheck: false,
            noEmit: true,
          },
        }),
      });
      const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
      expect(await run(process.execPath, folder, tsc, ['-p', '.'])).toEqual({
        ended: 0,
        printed: '',
        complaints: '',
      });
    },
    60_000,
  );
});

/** An example as it stands, but for the address of its server, and ports that may be taken here. */
function placed(text: string, address: string | undefined, url: string | undefined, own: string): string {
  let result = text;
  if (address !== undefined) result = result.replaceAll(address, url!).replaceAll("'orders'", `'${own}'`);
  else for (const [port, free] of ports) result = result.replaceAll(port, free);
  return result;
}

interface Run {
  /** The exit code, or the signal. */
  readonly ended: number | string;
  readonly printed: string;
  readonly complaints: string;
}

/** Runs a file until it ends. With `until`, sends Ctrl-C once that was printed. */
async function run(
  node: string,
  folder: string,
  file: string,
  options: readonly string[] = [],
  until?: string,
): Promise<Run> {
  const child = spawn(node, ['--no-warnings', file, ...options], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  let printed = '';
  let complaints = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
    if (until !== undefined && printed.includes(until)) child.kill('SIGINT');
  });
  child.stderr.on('data', (chunk) => {
    complaints += chunk;
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [code, signal] = await once(child, 'close');
  return { ended: code ?? signal, printed, complaints };
}
