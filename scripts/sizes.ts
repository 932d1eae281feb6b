import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { buildPageIfStale } from './build-page.ts';
import { root } from './command.ts';

const KILOBYTE = 1000;

/**
 * What a user's bundle grows by, minified and gzipped. `maxBytes` holds what was reached, so that nothing grows unseen;
 * `aimBytes` is what we set out for, and docs/performance.md says what stands in the way.
 */
const limits: readonly { name: string; code: string; maxBytes: number; aimBytes: number }[] = [
  {
    name: 'retry alone',
    code: `import { definePolicy, retry } from 'holdfast'; export const p = definePolicy([retry]);`,
    maxBytes: 9.3 * KILOBYTE,
    aimBytes: 6 * KILOBYTE,
  },
  {
    name: 'retry, budget, network and http packs',
    code: `import { budget, definePolicy, http, network, retry } from 'holdfast'; export const p = definePolicy([retry, budget, network, http]);`,
    maxBytes: 12.9 * KILOBYTE,
    aimBytes: 9 * KILOBYTE,
  },
  {
    name: 'everything but explain and lint',
    code: `export * as holdfast from 'holdfast';`,
    maxBytes: 27.55 * KILOBYTE,
    aimBytes: 20 * KILOBYTE,
  },
];

/** The whole page of the console, gzipped, with its fonts. */
const pageBytesMax = 150 * KILOBYTE;

/** Every entry that promises to run in a browser; only `holdfast/ambient` needs Node. */
const browserEntries = [
  'holdfast',
  'holdfast/testing',
  'holdfast/explain',
  'holdfast/lint',
  '@holdfast/http',
  'holdfast/wire',
];

const complaints: string[] = [];
for (const { name, code, maxBytes, aimBytes } of limits) {
  const { bytes } = await bundle(code);
  const line = `${name}: ${kilobytes(bytes)}, at most ${kilobytes(maxBytes)}, aim ${kilobytes(aimBytes)}`;
  console.log(line);
  if (bytes > maxBytes) complaints.push(`Too big: ${line}.`);
}

for (const entry of browserEntries) {
  const { builtins } = await bundle(`export * as all from '${entry}';`);
  for (const builtin of builtins) complaints.push(`${entry} must run in a browser, and imports ${builtin}.`);
}

const page = await pageBytes();
const pageLine = `the console's page, all of it: ${kilobytes(page)}, at most ${kilobytes(pageBytesMax)}`;
console.log(pageLine);
if (page > pageBytesMax) complaints.push(`Too big: ${pageLine}.`);

for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;

async function bundle(code: string): Promise<{ bytes: number; builtins: string[] }> {
  const result = await build({
    stdin: { contents: code, resolveDir: root, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    conditions: ['holdfast-source'],
    // Left in place, so that one of them is reported by its name and not as a bundler's error.
    external: ['node:*'],
    logLevel: 'silent',
  });
  const output = result.outputFiles[0]?.contents ?? new Uint8Array();
  const imports = Object.values(result.metafile.outputs).flatMap((each) => each.imports);
  return { bytes: gzipSync(output, { level: 9 }).length, builtins: imports.map((each) => each.path) };
}

/** What a browser loads that opens every screen. Fonts are compressed already. */
async function pageBytes(): Promise<number> {
  await buildPageIfStale();
  const folder = path.join(root, 'packages/console/dist/page');
  return globSync('*', { cwd: folder }).reduce((sum, name) => {
    const bytes = readFileSync(path.join(folder, name));
    return sum + (name.endsWith('.woff2') ? bytes : gzipSync(bytes, { level: 9 })).length;
  }, 0);
}

function kilobytes(bytes: number): string {
  return `${(bytes / KILOBYTE).toFixed(2)} kB`;
}
