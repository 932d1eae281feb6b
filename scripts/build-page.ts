import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { root } from './command.ts';

const from = path.join(root, 'packages/console/page');
const to = path.join(root, 'packages/console/dist/page');

/**
 * Builds the page of the console: one chunk for each place of the navigation, files named by a hash of their content. Files of an earlier build
 * go last, so that a console that starts at this moment finds a whole page.
 */
export async function buildPage(): Promise<void> {
  mkdirSync(to, { recursive: true });
  const { metafile } = await build({
    entryPoints: [path.join(from, 'main.tsx'), path.join(from, 'styles.css')],
    outdir: to,
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    metafile: true,
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.woff2': 'file' },
    // The router can render on a server, which nobody does here: 4 kB that no browser would run.
    external: ['preact-render-to-string'],
    entryNames: '[name]-[hash]',
    chunkNames: 'chunk-[hash]',
    assetNames: '[name]-[hash]',
    absWorkingDir: root,
    logLevel: 'warning',
  });
  const entries = Object.entries(metafile.outputs).filter(([, { entryPoint }]) => entryPoint !== undefined);
  const outputOf = (name: string) => {
    const found = entries.find(([, { entryPoint }]) => entryPoint?.endsWith(name));
    return `/${path.basename(found![0])}`;
  };
  const html = readFileSync(path.join(from, 'index.html'), 'utf8')
    .replace('<!-- styles -->', `<link rel="stylesheet" href="${outputOf('styles.css')}" />`)
    .replace('<!-- script -->', `<script type="module" src="${outputOf('main.tsx')}"></script>`);
  cpSync(path.join(from, 'icon.svg'), path.join(to, 'icon.svg'));
  const unfinished = path.join(to, `index-${process.pid}`);
  writeFileSync(unfinished, html);
  renameSync(unfinished, path.join(to, 'index.html'));
  const made = new Set([
    'index.html',
    'icon.svg',
    ...Object.keys(metafile.outputs).map((each) => path.basename(each)),
  ]);
  for (const name of readdirSync(to)) if (!made.has(name)) rmSync(path.join(to, name), { force: true });
}

/** Builds the page if a source of it is newer than the page: tests never look at a stale one. */
export async function buildPageIfStale(): Promise<void> {
  const changedAt = Math.max(
    ...globSync(['**/*.ts', '**/*.tsx', '**/*.css', '**/*.html'], { cwd: from }).map(
      (name) => statSync(path.join(from, name)).mtimeMs,
    ),
  );
  const built = statSync(path.join(to, 'index.html'), { throwIfNoEntry: false });
  if (!built || built.mtimeMs < changedAt) await buildPage();
}

if (import.meta.main) await buildPage();
