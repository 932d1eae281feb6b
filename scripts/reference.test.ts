import { readFileSync } from 'node:fs';
import path from 'node:path';
import { commands } from '@holdfast/cli';
import { reservedHeaders } from '@holdfast/contracts';
import { readHint } from 'holdfast';
import { expect, test } from 'vitest';
import { root } from './command.ts';
import { errorAdvice } from './reference/error-advice.ts';
import { errorCodes } from './reference/error-codes.ts';
import { eventHeaders, hintHeaders } from './reference/wire-headers-page.ts';
import { pages, referenceFolder } from './reference.ts';

test.each(Object.entries(pages))('docs/reference/%s is what `npm run reference` writes', (name, make) => {
  expect(readFileSync(path.join(referenceFolder, name), 'utf8')).toBe(make());
});

test('every error code has a class, a sentence that says when, and advice', () => {
  const codes = errorCodes();
  expect(codes.length).toBeGreaterThan(50);
  const silent = codes.filter(
    ({ code, class: owner, comment }) =>
      owner === '' || !(errorAdvice[code]?.when ?? comment) || !errorAdvice[code]?.todo,
  );
  expect(silent.map(({ code }) => code)).toEqual([]);
  expect(Object.keys(errorAdvice).toSorted()).toEqual(codes.map(({ code }) => code));
});

test('no text of the sources names an error code that the page does not have', () => {
  const known = new Set(errorCodes().map(({ code }) => code));
  const readmes = ['README.md', 'packages/core/README.md', 'docs/events.md', 'docs/server.md'];
  const named = readmes.flatMap((file) => [
    ...readFileSync(path.join(root, file), 'utf8').matchAll(/\bHOLDFAST_[A-Z_]+[A-Z]\b/g),
  ]);
  const variables = /^HOLDFAST_(STORE|GATEWAY|ENVOY|\w+_URL|\w*TOKEN)$/;
  expect(named.map(([name]) => name).filter((name) => !known.has(name) && !variables.test(name))).toEqual([]);
});

test('every notice says when it is sent', () => {
  const rows = readFileSync(path.join(referenceFolder, 'notices.md'), 'utf8').match(/^\| `.*$/gm) ?? [];
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((row) => row.endsWith('| – |'))).toEqual([]);
});

test('every header of an event is described, and no other', () => {
  expect(Object.keys(eventHeaders).toSorted()).toEqual([...reservedHeaders].toSorted());
});

test.each(hintHeaders)('$header: $example is read as 2 s', ({ header, example }) => {
  expect(readHint({ [header]: example }, () => 0, true)).toEqual({
    retryAfterMs: 2000,
    unreadable: undefined,
  });
});

test('every command is on its page', () => {
  const page = readFileSync(path.join(referenceFolder, 'cli.md'), 'utf8');
  expect(commands.filter(({ name }) => !page.includes(`### \`holdfast ${name}`))).toEqual([]);
});
