import { cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Eleventy } from '@11ty/eleventy';
import { build } from 'esbuild';
import MiniSearch from 'minisearch';
import { root } from './command.ts';
import { layout } from './site/layout.ts';
import { amendMarkdown, type Findings, type Part } from './site/markdown.ts';
import { type Page, readPages } from './site/pages.ts';
import { type Entry, searchOptions } from './site/search.ts';

const from = path.join(root, 'scripts/site');
const site = path.join(root, 'packages/console/dist/help');
const excerptLength = 140;

/** Builds the help of the console from the Markdown of the repository. Files of an earlier build go last. */
export async function buildSite(to: string = site): Promise<void> {
  const pages = readPages();
  const findings: Findings = { parts: [], pictures: new Set() };
  const bundled = await bundle(to);
  const contents = await render(pages, findings);
  const made = new Set(bundled.files);
  const write = (name: string, text: string) => {
    mkdirSync(path.dirname(path.join(to, name)), { recursive: true });
    writeFileSync(path.join(to, name), text);
    made.add(name);
  };
  for (const page of pages)
    write(page.file, layout(page, contents.get(page)!, { pages, parts: findings.parts, ...bundled }));
  write('search.json', JSON.stringify(indexOf(findings.parts)));
  write('icon.svg', readFileSync(path.join(root, 'packages/console/page/icon.svg'), 'utf8'));
  for (const picture of findings.pictures) {
    cpSync(path.join(root, picture), path.join(to, picture));
    made.add(picture);
  }
  for (const name of globSync('**/*', { cwd: to })) {
    const isFile = statSync(path.join(to, name), { throwIfNoEntry: false })?.isFile();
    if (isFile && !made.has(name.replaceAll(path.sep, '/'))) rmSync(path.join(to, name), { force: true });
  }
}

/** Builds the site if there is none, or a source of it is newer: tests never look at a stale one. */
export async function buildSiteIfStale(): Promise<void> {
  const own = globSync('{scripts/site/*,scripts/build-site.ts,packages/console/page/*.css}', { cwd: root });
  const sources = [...own, ...readPages().map(({ source }) => source)];
  const changedAt = Math.max(
    ...sources.map((name) => statSync(path.join(root, name), { throwIfNoEntry: false })?.mtimeMs ?? 0),
  );
  const built = statSync(path.join(site, 'search.json'), { throwIfNoEntry: false });
  if (!built || built.mtimeMs < changedAt) await buildSite();
}

/** The content of each page, by Eleventy. Pages are virtual templates: the list is ours, and nothing else is read. */
async function render(pages: readonly Page[], findings: Findings): Promise<Map<Page, string>> {
  const bySource = new Map(pages.map((page) => [page.source, page]));
  const eleventy = new Eleventy(from, site, {
    quietMode: true,
    configPath: undefined,
    config(config) {
      config.setTemplateFormats(['md']);
      config.setUseGitIgnore(false);
      config.amendLibrary('md', (markdown) => amendMarkdown(markdown, bySource, findings));
      for (const { source, file, markdown } of pages)
        config.addTemplate(`scripts/site/${source.replace(/\.txt$/, '.txt.md')}`, markdown, {
          source,
          permalink: file,
        });
      // Braces of examples are text, not a template.
      return { markdownTemplateEngine: false };
    },
  });
  eleventy.disableLogger();
  const rendered = await eleventy.toJSON();
  const byOutput = new Map(
    rendered.map(({ outputPath, content }) => [path.resolve(root, outputPath), content]),
  );
  return new Map(pages.map((page) => [page, byOutput.get(path.join(site, page.file)) ?? '']));
}

/** The script and the styles, with the fonts. */
async function bundle(to: string): Promise<{ script: string; styles: string; files: string[] }> {
  mkdirSync(to, { recursive: true });
  const { metafile } = await build({
    entryPoints: [path.join(from, 'browser.ts'), path.join(from, 'site.css')],
    ...{ outdir: to, absWorkingDir: root, bundle: true, format: 'esm', minify: true, metafile: true },
    ...{ target: 'es2022', loader: { '.woff2': 'file' }, logLevel: 'warning' },
    ...{ entryNames: '[name]-[hash]', assetNames: '[name]-[hash]' },
  });
  const files = Object.keys(metafile.outputs).map((each) => path.basename(each));
  const named = (ending: string) => files.find((each) => each.endsWith(ending))!;
  return { script: named('.js'), styles: named('.css'), files };
}

function indexOf(parts: readonly Part[]): MiniSearch<Entry> {
  const index = new MiniSearch(searchOptions);
  index.addAll(
    parts.map(({ page, level, anchor, heading, text }, id) => ({
      ...{ id, heading, text, title: page.title },
      url: level === 1 ? page.file : `${page.file}#${anchor}`,
      excerpt: text.length > excerptLength ? `${text.slice(0, excerptLength)}…` : text,
    })),
  );
  return index;
}

if (import.meta.main) await buildSite();
