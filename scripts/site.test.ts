import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import MiniSearch from 'minisearch';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildSite } from './build-site.ts';
import { root } from './command.ts';
import { home, readPages, resolveLink, sections } from './site/pages.ts';
import { searchOptions } from './site/search.ts';

const pages = readPages();
const bySource = new Map(pages.map((page) => [page.source, page]));
const to = mkdtempSync(path.join(os.tmpdir(), 'holdfast-site-'));
let files: Set<string>;
const htmlOf = (file: string) => readFileSync(path.join(to, file), 'utf8');

beforeAll(async () => {
  writeFileSync(path.join(to, 'of-an-earlier-build.html'), 'stale');
  await buildSite(to);
  files = new Set(globSync('**/*.*', { cwd: to }).map((each) => each.replaceAll(path.sep, '/')));
}, 60_000);
afterAll(() => rmSync(to, { recursive: true }));

/** The file of the site that a link of a page leads to, and its anchor; `undefined`: it leaves the site. */
function targetOf(file: string, href: string): { file: string; anchor: string } | undefined {
  const url = new URL(href, `http://site/below/${file}`);
  if (url.host !== 'site') return undefined;
  const inside = url.pathname.replace('/below/', '');
  const anchor = decodeURIComponent(url.hash.slice(1));
  return { file: /(^|\/)$/.test(inside) ? `${inside}index.html` : decodeURIComponent(inside), anchor };
}

function linksOf(html: string): string[] {
  return [...html.matchAll(/<[a-z]+ [^>]*?(?:href|src)="([^"]*)"/g)].map(([, link]) =>
    link!.replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
  );
}

test('every Markdown file of the documents is a page, and nothing of an earlier build stays', () => {
  const documents = globSync(['docs/**/*.md', '{packages,engines}/*/README.md', 'examples/*/README.md'], {
    cwd: root,
  });
  expect(documents.length).toBeGreaterThan(90);
  expect(documents.filter((source) => !bySource.has(source.replaceAll(path.sep, '/')))).toEqual([]);
  expect(pages.filter(({ file }) => !files.has(file))).toEqual([]);
  expect(files).not.toContain('of-an-earlier-build.html');
});

describe.each(pages.map(({ file }) => file))('%s', (file) => {
  test('has one h1, a title and landmarks', () => {
    const html = htmlOf(file);
    expect(html.match(/<h1[ >]/g)).toHaveLength(1);
    expect(/<title>([^<]+)<\/title>/.exec(html)?.[1]).toMatch(/Holdfast help$/);
    for (const landmark of ['<header', '<nav', '<main']) expect(html.split(landmark)).toHaveLength(2);
  });

  test('has no inline script, no inline style, and no picture of another host', () => {
    const html = htmlOf(file);
    expect(html).not.toMatch(/<style|<[^>]+\s(style|on\w+)=/i);
    for (const [script] of html.matchAll(/<script[^>]*>[\s\S]*?<\/script>/g))
      expect(script).toMatch(/^<script type="module" src="[^":]+"><\/script>$/);
    expect(html).not.toMatch(/<img [^>]*src="(https?:)?\/\//);
    expect(html).not.toContain('&lt;!--');
  });

  test('has only links that lead somewhere', () => {
    const dead = linksOf(htmlOf(file)).filter((href) => {
      const target = targetOf(file, href);
      if (target === undefined) return false;
      if (!files.has(target.file)) return true;
      return target.anchor !== '' && !htmlOf(target.file).includes(` id="${target.anchor}"`);
    });
    expect(dead).toEqual([]);
  });
});

test('the navigation of every page has every page, and names each section', () => {
  for (const { file } of pages) {
    const [, nav = ''] = /<nav[^>]*>([\s\S]*?)<\/nav>/.exec(htmlOf(file)) ?? [];
    const reached = new Set(linksOf(nav).map((href) => targetOf(file, href)?.file));
    expect(pages.filter((page) => !reached.has(page.file)).map((page) => page.source)).toEqual([]);
    expect([...nav.matchAll(/<summary>(\w+)<\/summary>/g)].map(([, name]) => name)).toEqual(sections);
  }
});

test.each([
  ['docs/guides/README.md', '../../packages/http', '../../packages/http/'],
  ['docs/guides/README.md', '../../packages/http/README.md#bodies', '../../packages/http/#bodies'],
  ['docs/events.md', 'server.md', 'server.html'],
  ['docs/events.md', '../README.md', '../'],
  ['README.md', 'docs/decisions', 'docs/decisions/'],
  ['README.md', 'LICENSE', `${home}/blob/main/LICENSE`],
  ['docs/events.md', '../packages/events/src', `${home}/tree/main/packages/events/src`],
  ['README.md', 'docs/overload.svg', 'docs/overload.svg'],
  ['README.md', 'https://example.com/a.md', 'https://example.com/a.md'],
])('a link of %s to %s becomes %s', (source, link, href) => {
  expect(resolveLink(bySource.get(source)!, link, bySource).href).toBe(href);
});

test.each([
  ['Retry-After', /throttle|retry|http|rate-limiting|server/],
  ['parked', /parking-lot|events|dead-letter|console/],
  ['breaker', /breaker/],
])('the search finds %s first in a page about it', (words, fitting) => {
  const index = MiniSearch.loadJSON(htmlOf('search.json'), searchOptions);
  const found = index.search(words);
  expect(found.length).toBeGreaterThan(3);
  expect(found[0]!.url).toMatch(fitting);
  for (const { url } of found) expect(files).toContain(url.split('#')[0]);
});
