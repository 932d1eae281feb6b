import { expect, test } from 'vitest';
import {
  ambientTimeAndChance,
  dependencyDirection,
  importDirection,
  longFile,
  noDrawers,
  noExportStar,
  noMachineTraces,
} from './tidy-rules.ts';

const inCore = 'packages/core/src/run.ts';

test.each([
  ['packages/contracts/src/a.ts', `import { broker } from '@holdfast/events';`],
  ['packages/http/src/a.ts', `import type { Gateway } from '@holdfast/gateway';`],
  ['packages/http/src/a.ts', `export { policy } from '@holdfast/server';`],
  ['packages/events/src/a.ts', `const { redis } = await import('@holdfast/redis');`],
  ['packages/unknown/src/a.ts', `import { policy } from 'holdfast';`],
  ['packages/http/src/a.ts', `import { run } from '../../core/src/run.ts';`],
  ['engines/redis/src/a.ts', `import { consumer } from '@holdfast/events';`],
  ['engines/redis/src/a.ts', `import { sql } from '@holdfast/postgres';`],
  ['engines/redis/src/a.ts', `import { sql } from '../../postgres/src/sql.ts';`],
  [inCore, `import { readFile } from 'node:fs';`],
  [inCore, `import ms from 'ms';`],
])('%s may not say %s', (path, text) => {
  expect(importDirection({ path, text })).toHaveLength(1);
});

test.each([
  ['packages/events/src/a.ts', `import { policy } from 'holdfast';`],
  ['packages/cli/src/a.ts', `import { broker } from '@holdfast/contracts';`],
  ['packages/http/src/deep/a.ts', `import { run } from '../run.ts';`],
  ['packages/http/src/a.ts', `import { Agent } from 'undici';`],
  ['packages/http/test/a.test.ts', `import { faults } from '@holdfast/chaos';`],
  [
    'engines/redis/src/a.ts',
    `import { broker } from '@holdfast/contracts'; import { policy } from 'holdfast/testing';`,
  ],
  ['packages/core/src/ambient.ts', `import { AsyncLocalStorage } from 'node:async_hooks';`],
  [inCore, `// import x from '@holdfast/http'`],
])('%s may say %s', (path, text) => {
  expect(importDirection({ path, text })).toEqual([]);
});

test('a package depends only on packages it may import', () => {
  const manifest = (path: string, name: string) =>
    dependencyDirection({ path, text: JSON.stringify({ dependencies: { [name]: '1.0.0' } }) });

  expect(manifest('engines/redis/package.json', '@holdfast/events')).toHaveLength(1);
  expect(manifest('packages/core/package.json', 'ms')).toHaveLength(1);
  expect(manifest('engines/redis/package.json', 'redis')).toEqual([]);
});

test.each([
  'Date.now()',
  'new Date()',
  'Date()',
  'performance.now()',
  'globalThis.performance.now()',
  'setTimeout(go, 1)',
  'globalThis.setTimeout(go, 1)',
  'const wait = setTimeout;',
  'setInterval(go, 1)',
  'setImmediate(go)',
  'Math.random()',
  'const roll = Math.random;',
  'crypto.randomUUID()',
  'globalThis.crypto.getRandomValues(bytes)',
  'AbortSignal.timeout(5)',
  'process.hrtime.bigint()',
  `import { setTimeout as sleep } from 'node:timers/promises';`,
  `const text = \`at \${Date.now()}\`;`,
])('%s is ambient time or chance', (text) => {
  expect(ambientTimeAndChance({ path: inCore, text })).toHaveLength(1);
  expect(ambientTimeAndChance({ path: 'packages/core/src/time/system-clock.ts', text })).toEqual([]);
  expect(ambientTimeAndChance({ path: 'packages/core/test/run.test.ts', text })).toEqual([]);
});

test.each([
  '// Date.now() is not read here',
  '/* setTimeout */',
  `const text = 'Math.random()';`,
  'const text = `new Date()`;',
  'const date = new Date(epochMs);',
  'const id = clock.setTimeout(go, 1);',
  'interface Timers { setTimeout(go: () => void, delayMs: number): void }',
  'const timers = { setTimeout: wheel.add };',
  'const pattern = /Date.now()/;',
  'Math.floor(1.5)',
  'Object.prototype.toString.call(body)',
])('%s is not', (text) => {
  expect(ambientTimeAndChance({ path: inCore, text })).toEqual([]);
});

test('a barrel names its exports', () => {
  expect(noExportStar({ path: inCore, text: `export * from './verdict.ts';` })).toHaveLength(1);
  expect(noExportStar({ path: inCore, text: `export { stop } from './verdict.ts';` })).toEqual([]);
  expect(noExportStar({ path: inCore, text: `export * as verdicts from './verdict.ts';` })).toEqual([]);
});

test('no file or folder is a drawer', () => {
  for (const name of ['utils.ts', 'helpers.test.ts', 'common/clock.ts', 'types.ts', 'constants.mjs']) {
    expect(noDrawers({ path: `packages/core/src/${name}`, text: '' })).toHaveLength(1);
  }
  expect(noDrawers({ path: 'packages/core/src/error-types.ts', text: '' })).toEqual([]);
});

test('no file names a registry or a path of one machine', () => {
  const rule = noMachineTraces('/var/someone', '/srv/checkout');
  // Put together here, so that this file passes its own rule.
  const bad = [
    ['https://registry', 'npmjs.org/x'].join('.'),
    ['see ', 'home', 'ann/notes'].join('/'),
    'cd /srv/checkout',
    'open /var/someone/file',
  ];
  for (const text of bad) expect(rule({ path: 'a.md', text })).toHaveLength(1);
  for (const text of ['GET /users/home/1', '/srv/checkouts/1', 'src/home/page']) {
    expect(rule({ path: 'a.md', text })).toEqual([]);
  }
});

test('a long file is noted', () => {
  expect(longFile({ path: inCore, text: '\n'.repeat(400) })).toHaveLength(1);
  expect(longFile({ path: inCore, text: '\n'.repeat(399) })).toEqual([]);
});
