import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { capture, script } from './command.ts';
import { type PublicName, publicNames, snapshotOf } from './public-api.ts';
import { apiSnapshots, referenceFolder } from './reference.ts';

let names: PublicName[] = [];

// What a user sees is what the build wrote, so it must be of these sources.
beforeAll(async () => {
  const { code, output } = await capture(script('scripts/build.ts'));
  if (code !== 0) throw new Error(output);
  names = publicNames();
}, 120_000);

const nameOf = ({ entry, name, file }: PublicName) => `${entry} ${name} (${file})`;

describe('every exported name', () => {
  test('has a doc comment in its declaration', () => {
    expect(names.length).toBeGreaterThan(1000);
    expect(names.filter(({ comment }) => comment === '').map(nameOf)).toEqual([]);
  });

  test('has a comment that says more than the name', () => {
    const words = (text: string) => text.toLowerCase().match(/[a-z]+/g) ?? [];
    const empty = names.filter(({ name, comment }) => {
      const known = new Set([...words(name.replaceAll(/([a-z])([A-Z])/g, '$1 $2')), 'a', 'the', 'of', 'an']);
      return words(comment).every((word) => known.has(word));
    });
    expect(empty.map(nameOf)).toEqual([]);
  });
});

test('docs/reference/api is what `npm run reference` writes: a change of the public API shows in its diff', () => {
  const written = globSync('api/*.txt', { cwd: referenceFolder }).toSorted();
  const snapshots = apiSnapshots(names);
  expect(written).toEqual([...snapshots.keys()].toSorted());
  for (const [name, text] of snapshots)
    expect(readFileSync(path.join(referenceFolder, name), 'utf8'), name).toBe(text);
});

test('a snapshot leaves nothing out of a long declaration', () => {
  const long = Array.from({ length: 40 }, (_, index) => `'word number ${index}'`);
  const text = snapshotOf([
    { entry: 'x', name: 'T', comment: '', file: '', declaration: `export type T = ${long.join(' | ')};` },
  ]);
  expect(text.split('\n').every((line) => line.length <= 160)).toBe(true);
  expect(text.replaceAll(/\s+/g, ' ')).toContain(`type T = ${long.join(' | ')}`);
});
