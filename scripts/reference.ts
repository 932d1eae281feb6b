import { globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { capture, root, script } from './command.ts';
import { type PublicName, publicNames, snapshotOf } from './public-api.ts';
import { cliPage } from './reference/cli-page.ts';
import { errorsPage } from './reference/errors-page.ts';
import { httpApiPage } from './reference/http-api-page.ts';
import { metricsPage } from './reference/metrics-page.ts';
import { noticesPage } from './reference/notices-page.ts';
import { wireHeadersPage } from './reference/wire-headers-page.ts';

export const referenceFolder: string = path.join(root, 'docs/reference');

/** The pages that the sources make, by their path below `docs/reference`. */
export const pages: Readonly<Record<string, () => string>> = {
  'errors.md': errorsPage,
  'notices.md': noticesPage,
  'metrics.md': metricsPage,
  'wire-headers.md': wireHeadersPage,
  'cli.md': cliPage,
  'http-api.md': httpApiPage,
};

/** The public names of each package, by path: `api/core.txt`. */
export function apiSnapshots(names: readonly PublicName[]): Map<string, string> {
  const packages = Map.groupBy(names, ({ entry }) => /^(@[^/]+\/)?[^/]+/.exec(entry)![0]);
  return new Map(
    [...packages].map(([name, its]) => [`api/${name.replace('@holdfast/', '')}.txt`, snapshotOf(its)]),
  );
}

async function writeAll(): Promise<void> {
  const { code, output } = await capture(script('scripts/build.ts'));
  if (code !== 0) throw new Error(output);
  const snapshots = apiSnapshots(publicNames());
  const folder = path.join(referenceFolder, 'api');
  mkdirSync(folder, { recursive: true });
  for (const stale of globSync('*.txt', { cwd: folder }))
    if (!snapshots.has(`api/${stale}`)) rmSync(path.join(folder, stale));
  const made = Object.entries(pages).map(([name, make]) => [name, make()] as const);
  for (const [name, text] of [...made, ...snapshots]) {
    writeFileSync(path.join(referenceFolder, name), text);
    console.log(`docs/reference/${name}: ${text.split('\n').length} lines`);
  }
}

if (import.meta.main) await writeAll();
