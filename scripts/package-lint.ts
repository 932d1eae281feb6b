import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { capture, endOnSignal, root, tool } from './command.ts';

endOnSignal();
const complaints: string[] = [];
const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-pack-'));
try {
  for await (const manifest of glob('{packages,engines}/*/package.json', { cwd: root })) {
    const { private: isPrivate } = JSON.parse(await readFile(path.join(root, manifest), 'utf8'));
    if (!isPrivate) complaints.push(...(await lint(path.dirname(manifest))));
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;

/** Looks at the packed file, because that is what users get: a file missing from it is missing nowhere else. */
async function lint(packageFolder: string): Promise<string[]> {
  const packed = await capture([
    'npm',
    'pack',
    `./${packageFolder}`,
    '--json',
    '--ignore-scripts',
    '--loglevel=error',
    `--pack-destination=${folder}`,
  ]);
  const name = /"filename":\s*"([^"]+)"/.exec(packed.output)?.[1];
  if (packed.code !== 0 || name === undefined)
    return [`${packageFolder}: npm pack failed.\n${packed.output}`];
  const tarball = path.join(folder, name);
  const found: string[] = [];
  for (const file of ['README.md', 'LICENSE']) {
    if (!packed.output.includes(`"${file}"`)) found.push(`${packageFolder}: no ${file} is packed.`);
  }
  const files = [...packed.output.matchAll(/"path":\s*"([^"]+)"/g)].map(([, file]) => file!);
  const readme = await readFile(path.join(root, packageFolder, 'README.md'), 'utf8');
  for (const link of deadLinks(readme, files))
    found.push(`${packageFolder}: README.md links to ${link}, which is not packed.`);
  const manifest = JSON.parse(await readFile(path.join(root, packageFolder, 'package.json'), 'utf8'));
  for (const field of ['description', 'keywords', 'homepage', 'bugs', 'repository', 'publishConfig'])
    if (!manifest[field]) found.push(`${packageFolder}: package.json has no ${field}.`);
  if (manifest.repository?.directory !== packageFolder)
    found.push(`${packageFolder}: repository.directory is "${manifest.repository?.directory}".`);
  for (const [linter, command] of [
    ['publint', tool('publint/src/cli.js', 'run', tarball, '--strict')],
    [
      'are the types wrong',
      tool('@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only', '--no-emoji'),
    ],
  ] as const) {
    const { code, output } = await capture(command);
    if (code !== 0) found.push(`${packageFolder}: ${linter}\n${output}`);
  }
  return found;
}

/** Links of a README that lead nowhere for somebody who has only the package. */
function deadLinks(readme: string, files: readonly string[]): string[] {
  return [...readme.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^(https?:|mailto:|#)/.test(link))
    .filter((link) => {
      const target = link.replace(/#.*$/, '').replace(/\/$/, '');
      return !files.some((file) => file === target || file.startsWith(`${target}/`));
    });
}
