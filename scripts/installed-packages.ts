import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { root } from './command.ts';

const exec = promisify(execFile);

/** A package as it is published. */
export interface PublishedPackage {
  readonly name: string;
  /** `packages/core`. */
  readonly folder: string;
  readonly readme: string;
  /** What its `engines` says of Node. */
  readonly node: string;
  /** `holdfast`, `holdfast/testing`, … */
  readonly entries: readonly string[];
  /** Optional ones too: `fastify`. */
  readonly peers: readonly string[];
}

export function publishedPackages(): PublishedPackage[] {
  return globSync('{packages,engines}/*/package.json', { cwd: root })
    .toSorted()
    .map((file) => ({
      folder: path.dirname(file),
      ...JSON.parse(readFileSync(path.join(root, file), 'utf8')),
    }))
    .filter(({ private: isPrivate }) => !isPrivate)
    .map(({ folder, name, engines, exports, peerDependencies = {} }) => ({
      name,
      folder,
      readme: readFileSync(path.join(root, folder, 'README.md'), 'utf8'),
      node: engines.node,
      entries: Object.keys(exports).map((entry) => name + entry.slice(1)),
      peers: Object.keys(peerDependencies),
    }));
}

/** A folder of a user who has installed packages; or why there is none. */
export type UserFolder =
  | { readonly folder: string; readonly missing?: undefined; remove(): void }
  | { readonly missing: string; readonly folder?: undefined };

/** Packs packages, as `npm publish` does, and gives the tarballs by the name of their package. */
export async function packAll(packages: readonly PublishedPackage[]): Promise<Map<string, string>> {
  const to = mkdtempSync(path.join(os.tmpdir(), 'holdfast-packed-'));
  const folders = packages.map(({ folder }) => `./${folder}`);
  const flags = ['--json', '--ignore-scripts', '--loglevel=error', `--pack-destination=${to}`];
  const { stdout } = await exec('npm', ['pack', ...folders, ...flags], { cwd: root, maxBuffer: 2 ** 26 });
  const packed = Object.values(JSON.parse(stdout)) as { name: string; filename: string }[];
  return new Map(packed.map(({ name, filename }) => [name, path.join(to, filename)]));
}

/** Installs tarballs and names such as `node@22.19.0` into a new, empty project. */
export async function installed(what: readonly string[], { scripts = false } = {}): Promise<UserFolder> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-user-'));
  writeFileSync(path.join(folder, 'package.json'), '{ "name": "user", "private": true, "type": "module" }');
  const flags = [
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    // With CI=true a missing registry is a failure, so it gets a second chance.
    `--fetch-retries=${process.env.CI === 'true' ? 2 : 0}`,
    '--fetch-timeout=30000',
  ];
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    await exec('npm', ['install', ...flags, ...(scripts ? [] : ['--ignore-scripts']), ...what], {
      cwd: folder,
      maxBuffer: 2 ** 26,
    });
    return { folder, remove };
  } catch (error) {
    remove();
    const { stderr = '', message } = error as { stderr?: string; message: string };
    const [unreachable] =
      /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E5\d\d)\b/.exec(
        stderr,
      ) ?? [];
    if (unreachable === undefined || process.env.CI === 'true') throw new Error(`${message}\n${stderr}`);
    return { missing: `the registry of npm cannot be reached, ${unreachable}` };
  }
}

/** The first example of a README, with the file that it reads if there is one, and what the README says of it. */
export interface ReadmeExample {
  readonly code: string;
  /** A block before it that begins with the name of a file: `# gateway.yaml`. */
  readonly files: ReadonlyMap<string, string>;
  /** What it prints, and perhaps more around it. */
  readonly prints: string;
  /** Whether it goes on until Ctrl-C. */
  readonly waits: boolean;
}

export function firstExample(readme: string): ReadmeExample | undefined {
  const block = /^```ts\n([\s\S]*?)^```\n([\s\S]*?)(?=^```|^## |$(?![\s\S]))/m.exec(readme);
  const said = /\bprints [^`]*`([^`]+)`([^;.:]* waits for)?/.exec(block?.[2] ?? '');
  if (!block || !said) return undefined;
  const before = readme.slice(0, block.index);
  const files = before.matchAll(/^```yaml\n# (\S+\.yaml)\n([\s\S]*?)^```$/gm);
  return {
    code: block[1]!,
    files: new Map(Array.from(files, ([, name, text]) => [name!, text!])),
    prints: said[1]!,
    waits: said[2] !== undefined,
  };
}

/** The packages that each `npm install` of a page names. */
export function installLines(page: string): string[][] {
  return [...page.matchAll(/^(?:\$ )?npm (?:install|i) (.+)$/gm)].map(([, rest]) =>
    rest!
      .replace(/#.*/, '')
      .split(/\s+/)
      .filter((word) => word !== '' && !word.startsWith('-')),
  );
}

/** The packages that code imports, without those of Node. */
export function importedPackages(code: string): string[] {
  const names = Array.from(code.matchAll(/^import [\s\S]*?'([^']+)';$/gm), ([, name]) => name!);
  const ours = names.filter((name) => !/^(node:|\.)/.test(name));
  return ours.map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)![0]);
}

/** Writes files into a new folder, and gives its path. */
export function written(folder: string, files: Readonly<Record<string, string>>): string {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return folder;
}
