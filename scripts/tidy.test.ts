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
import { noRetiredWords, noUnknownNames, vocabularyOf } from './word-rules.ts';

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
  ['packages/core/src/decide/decide.ts', `import { work } from '../run/work.ts';`],
  ['packages/core/src/decide/decide.ts', `import type { Plan } from '../policy/plan.ts';`],
  ['packages/core/src/machines/budget.ts', `import { policy } from '../policy/policy.ts';`],
  ['packages/core/src/machines/budget.ts', `export { retry } from '../parts/retry.ts';`],
  ['packages/core/src/time/timer.ts', `import { fields } from '../fields.ts';`],
  ['packages/core/src/classify/http.ts', `import { story } from '../report/story.ts';`],
  ['packages/core/src/run/work.ts', `import { policy } from '../policy/policy.ts';`],
  ['packages/core/src/parts/retry.ts', `import { policy } from '../policy/policy.ts';`],
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
  ['packages/core/src/machines/gcra.ts', `import type { Clock } from '../time/clock.ts';`],
  ['packages/core/src/classify/http.ts', `import { HoldfastError } from '../report/errors.ts';`],
  ['packages/core/src/classify/http.ts', `import type { Plan } from '../policy/plan.ts';`],
  ['packages/core/src/run/work.ts', `import type { Plan } from '../policy/plan.ts';`],
  ['packages/core/src/run/work.ts', `import { decide } from '../decide/decide.ts';`],
  ['packages/core/src/policy/policy.ts', `import { work } from '../run/work.ts';`],
  ['packages/core/src/index.ts', `export { policy } from './policy/policy.ts';`],
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

test.each([
  [inCore, 'const isSwift = true;'],
  [inCore, '// The shell of a run.'],
  ['packages/core/src/run/work.ts', 'class FlightDeck {}'],
  ['packages/events/src/crew.ts', ''],
  ['packages/events/src/a.ts', 'import { StandingOrders } from "./b.ts";'],
  ['packages/http/src/a.ts', '/** For the rooms above. */'],
  ['engines/sqlite/src/a.ts', 'const sql = `SELECT lane FROM event`;'],
  ['engines/sqlite/src/a.ts', '// Events that are in hand.'],
])('%s may not use the words of %s', (path, text) => {
  expect(noRetiredWords({ path, text })).toHaveLength(1);
});

test.each([
  [inCore, '// Calls that are in flight.'],
  [inCore, '// There is room for one more.'],
  [inCore, '// An eggshell breaks.'],
  ['packages/chaos/src/a.ts', 'class Lane {}'],
  ['packages/core/test/a.test.ts', '// The crew.'],
  ['engines/sqlite/src/schema.ts', '  lane TEXT,'],
])('%s may use the words of %s', (path, text) => {
  expect(noRetiredWords({ path, text })).toEqual([]);
});

test('a name in backticks inside a comment exists in code', () => {
  const rule = noUnknownNames(
    vocabularyOf([
      { path: inCore, text: 'const delayMs = 1; // `onlyInAComment`' },
      { path: 'packages/core/src/time/timer.ts', text: 'class Timer { #clock; setAt() {} }' },
      { path: 'packages/core/package.json', text: '{ "sideEffects": false }' },
      { path: 'docs/events.md', text: 'onlyInADocument' },
    ]),
  );
  const complaints = (comment: string) => rule({ path: inCore, text: `\n/** ${comment} */\nconst a = 1;` });

  for (const name of [
    'gone',
    'Timer.gone()',
    'gone.ts',
    'long-gone.ts',
    'onlyInAComment',
    'onlyInADocument',
  ]) {
    expect(complaints(`See \`${name}\`.`)).toEqual([
      expect.stringMatching(/^packages\/core\/src\/run\.ts:2 mentions `.*`, and no code has ".*"\.$/),
    ]);
  }
  for (const name of ['delayMs', 'Timer.setAt()', '#clock', 'timer.ts', 'sideEffects', 'events.md', 'core']) {
    expect(complaints(`See \`${name}\`.`)).toEqual([]);
  }
  // More than a name: an expression, a header, a path, a command.
  for (const text of ['gone + 1', 'Gone-Header', 'gone/away', 'npm run gone', '? + 0']) {
    expect(complaints(`See \`${text}\`.`)).toEqual([]);
  }
  expect(rule({ path: 'packages/core/test/a.test.ts', text: '// `gone`' })).toEqual([]);
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
