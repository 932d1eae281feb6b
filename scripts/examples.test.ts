import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { root } from './command.ts';

const folders = globSync('examples/*/package.json', { cwd: root })
  .map((file) => path.basename(path.dirname(file)))
  .sort();
/** These are started in other ways, or not at all: see examples/README.md. */
const older = new Set(['orders', 'snippets', 'tour']);
const read = (file: string) => readFileSync(path.join(root, 'examples', file), 'utf8');

test('examples/README.md leads to every example, and every link of it leads somewhere', () => {
  const links = [...read('README.md').matchAll(/\]\(([^)#]+)/g)].map(([, link]) => link!);
  expect(links).toEqual(expect.arrayContaining(folders));
  expect(links.filter((link) => !existsSync(path.join(root, 'examples', link)))).toEqual([]);
});

test('every link of deploy/README.md leads somewhere', () => {
  const links = [...read('../deploy/README.md').matchAll(/\]\(([^)#]+)/g)].map(([, link]) => link!);
  expect(links).toContain('kubernetes.yaml');
  expect(links.filter((link) => !existsSync(path.join(root, 'deploy', link)))).toEqual([]);
});

test.each(folders.filter((folder) => !older.has(folder)))(
  '%s says how it is run, and is tested',
  (folder) => {
    const manifest = JSON.parse(read(`${folder}/package.json`));
    expect(manifest).toMatchObject({
      name: `@holdfast/example-${folder}`,
      private: true,
      scripts: { start: 'node --conditions=holdfast-source src/main.ts' },
    });
    expect(read(`${folder}/README.md`)).toContain(`npm start -w examples/${folder}`);
    expect(globSync(`examples/${folder}/test/*.test.ts`, { cwd: root })).not.toEqual([]);
  },
);
