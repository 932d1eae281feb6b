import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { explain } from '../src/explain.ts';
import { policy } from '../src/index.ts';
import { rules } from '../src/lint.ts';
import { allOptionsTable, optionsTable, pages, rulesTable, stopRows } from './doc-tables.ts';

const root = path.join(import.meta.dirname, '../../..');
const read = (file: string) => readFile(path.join(root, file), 'utf8');

describe.each(Object.keys(pages))('docs/policies/%s.md', (page) => {
  const file = `docs/policies/${page}.md`;

  test('answers the same questions as the other pages, in the same order', async () => {
    const headings = (await read(file)).match(/^## .*/gm);
    expect(headings).toEqual([
      '## When',
      '## Options',
      '## What it costs',
      '## A good call',
      '## A bad call',
      '## How it is misused',
    ]);
  });

  test('has the options, the defaults and the notes of the tables', async () => {
    const shown = /## Options\n\n(\|[\s\S]*?\|)\n\n/.exec(await read(file))?.[1];
    expect(shown).toBe(optionsTable(page));
  });

  test.each(['good', 'bad'])('shows the %s call that the tests run', async (which) => {
    const shown = new RegExp(`## A ${which} call\n\n\`\`\`ts\n([\\s\\S]*?)\`\`\``).exec(
      await read(file),
    )?.[1];
    expect(shown).toBe(await read(`examples/snippets/src/${page}-${which}.ts`));
  });

  test('names only rules that there are', async () => {
    const said = (await read(file)).match(/`lint` (finds it|calls it)[^.]*/g) ?? [];
    const named = said.flatMap((line) => line.match(/`[a-z0-9]+(-[a-z0-9]+)+`/g) ?? []);
    const known = rules.map(({ id }) => `\`${id}\``);
    expect(named.filter((id) => !known.includes(id))).toEqual([]);
  });
});

test('every field is on exactly one page, and every page is in the list', async () => {
  const fields = policy().parts.flatMap((part) => Object.keys(part.fields));
  expect(Object.values(pages).flat().toSorted()).toEqual(fields.toSorted());
  const list = await read('docs/policies/README.md');
  for (const page of Object.keys(pages)) expect(list).toContain(`[${page}](${page}.md)`);
  const files = await readdir(path.join(root, 'docs/policies'));
  expect(files.toSorted()).toEqual(
    ['README.md', ...Object.keys(pages).map((page) => `${page}.md`)].toSorted(),
  );
});

test('the picture of the rings has the order of `explain`', async () => {
  const { operationRing, attemptRing } = explain(policy({ mode: 'observe' }));
  const [, work, attempt] = /around the work +(.*)\naround each +(.*)\n/.exec(
    await read('docs/policies/README.md'),
  )!;
  const partsIn = (line: string) => line.split(/ → | \| | \(|\)/).filter((part) => part !== '');
  expect(partsIn(work!)).toEqual(operationRing.map(({ part }) => part));
  expect(partsIn(attempt!)).toEqual(attemptRing.map(({ part }) => part));
});

test('docs/stop-reasons.md has every reason with its sentence and what to do', async () => {
  const [, , ...lines] = tableIn(await read('docs/stop-reasons.md'))!.split('\n');
  const rows = stopRows();
  expect(lines.map((line, index) => line.slice(0, rows[index]?.length))).toEqual(rows);
  for (const line of lines) expect(line).toMatch(/\. \| [A-Z].*\. \|$/);
});

test('docs/options.md has every option with its default', async () => {
  expect(tableIn(await read('docs/options.md'))).toBe(allOptionsTable());
});

test('docs/lint-rules.md has every rule', async () => {
  const text = await read('docs/lint-rules.md');
  expect(tableIn(text)).toBe(rulesTable());
  expect(/```ts\n([\s\S]*?)```/.exec(text)?.[1]).toBe(await read('examples/snippets/src/lint-a-document.ts'));
});

test('what the pages link to is there', async () => {
  const policies = Object.keys(pages).map((page) => `docs/policies/${page}.md`);
  for (const file of [...policies, 'docs/policies/README.md', 'docs/stop-reasons.md', 'docs/lint-rules.md']) {
    for (const [, link] of (await read(file)).matchAll(/\]\(([^)#]+)\)/g)) {
      const target = path.join(root, path.dirname(file), link!);
      await expect(stat(target), `${file} links to ${link}`).resolves.toBeDefined();
    }
  }
});

function tableIn(text: string): string | undefined {
  return /\n\n(\|[\s\S]*?\|)\n(\n|$)/.exec(text)?.[1];
}
