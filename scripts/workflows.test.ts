import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from './command.ts';
import { releaseComplaints } from './release-version.ts';

const files = globSync('.github/**/*.yml', { cwd: root });
const textOf = (file: string) => readFileSync(path.join(root, file), 'utf8');

test.each(files)('%s is YAML', (file) => {
  expect(parse(textOf(file))).toBeTypeOf('object');
});

test.each(files.filter((file) => file.includes('workflows')))(
  '%s pins its actions, and asks for no rights',
  (file) => {
    const uses = [...textOf(file).matchAll(/uses:\s*(\S+)/g)].map(([, action]) => action!);
    expect(uses.length).toBeGreaterThan(0);
    expect(uses.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
    const { permissions, jobs } = parse(textOf(file)) as {
      permissions: object;
      jobs: Record<string, { 'timeout-minutes'?: number }>;
    };
    expect(permissions).toEqual({ contents: 'read' });
    for (const job of Object.values(jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
  },
);

test('a release is refused if a version or the changelog differs from its tag', () => {
  const versions = new Map([
    ['holdfast', '0.1.0'],
    ['@holdfast/http', '0.1.1'],
  ]);
  expect(releaseComplaints('v0.1.0', versions, '## Unreleased')).toEqual([
    '@holdfast/http has version 0.1.1, and the tag says 0.1.0.',
    'CHANGELOG.md has no part "## 0.1.0".',
  ]);
  expect(releaseComplaints('v0.1.0', new Map([['holdfast', '0.1.0']]), '## 0.1.0 – 2026')).toEqual([]);
  expect(releaseComplaints('nightly', versions, '')).toEqual(['"nightly" is no version such as v0.1.0.']);
});
