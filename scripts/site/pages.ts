import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { root } from '../command.ts';

/** A page of the site. */
export interface Page {
  /** Where its Markdown is in the repository: `packages/http/README.md`. */
  readonly source: string;
  /** Its file in the site: `packages/http/index.html`. */
  readonly file: string;
  readonly title: string;
  readonly markdown: string;
  readonly section: Section;
}

/** The parts of the navigation, in their order. What a person needs first comes first. */
export const sections = [
  ...(['Start', 'Guides', 'Patterns', 'Examples', 'Policies', 'Packages', 'Engines'] as const),
  ...(['Reference', 'Decisions', 'Project'] as const),
];
export type Section = (typeof sections)[number];

const sources = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/**/*.md'],
  ...[
    'docs/reference/api/*.txt',
    '{packages,engines}/*/README.md',
    'examples/README.md',
    'examples/*/README.md',
  ],
];

/** The first rule that fits says where a page stands. A new page of `docs` without a rule is in the reference. */
const rules: readonly (readonly [RegExp, Section])[] = [
  [/^README\.md$/, 'Start'],
  [/^examples\//, 'Examples'],
  [/^docs\/(coming-from|comparison|choosing-an-engine|packaging-or-assembly)\.md$/, 'Start'],
  [/^docs\/guides\/|^docs\/(events|server|telemetry|storms|lint-and-storms)\.md$/, 'Guides'],
  [/^docs\/patterns\//, 'Patterns'],
  [/^docs\/policies\//, 'Policies'],
  [/^packages\//, 'Packages'],
  [/^engines\//, 'Engines'],
  [/^docs\/decisions\//, 'Decisions'],
  [/^docs\/(architecture|performance|published|dependencies)\.md$|^[A-Z]+\.md$/, 'Project'],
  [/./, 'Reference'],
];

/** The home of the repository on the web, for links to what is not a page. */
export const home: string = JSON.parse(
  readFileSync(path.join(root, 'packages/console/package.json'), 'utf8'),
).repository.url.replace(/^git\+|\.git$/g, '');

/** Reads every page of the repository. A folder of `docs` without a README gets a page that lists what it has. */
export function readPages(): Page[] {
  const found = globSync(sources, { cwd: root }).map((each) => each.replaceAll(path.sep, '/'));
  const texts = new Map(found.sort().map((source) => [source, markdownOf(source)]));
  const folders = new Set(
    found.filter((each) => each.startsWith('docs/')).map((each) => path.posix.dirname(each)),
  );
  for (const folder of folders) {
    const readme = `${folder}/README.md`;
    if (folder !== 'docs' && !texts.has(readme)) texts.set(readme, listOf(folder, texts));
  }
  const pages = [...texts].map(([source, markdown]) => ({
    ...{ source, markdown, file: fileOf(source), title: titleOf(markdown) },
    section: rules.find(([pattern]) => pattern.test(source))![1],
  }));
  return pages.sort((a, b) => order(a.source) - order(b.source) || (a.source < b.source ? -1 : 1));
}

/** In a section the overview comes first, then pages, then folders of pages. */
function order(source: string): number {
  if (source === 'README.md') return 0;
  const depth = source.split('/').length;
  return /^docs\/\w+\/README\.md$|^examples\/README\.md$/.test(source) ? 1 : depth + 1;
}

function markdownOf(source: string): string {
  const text = readFileSync(path.join(root, source), 'utf8');
  if (source.endsWith('.md')) return text;
  return `# API of ${path.basename(source, '.txt')}\n\n\`\`\`ts\n${text}\n\`\`\`\n`;
}

function listOf(folder: string, texts: ReadonlyMap<string, string>): string {
  const name = path.posix.basename(folder);
  const title = name === 'api' ? 'API by package' : name.charAt(0).toUpperCase() + name.slice(1);
  const links = [...texts]
    .filter(([source]) => path.posix.dirname(source) === folder)
    .map(([source, text]) => `- [${titleOf(text)}](${path.posix.basename(source)})`);
  return `# ${title}\n\n${links.join('\n')}\n`;
}

function fileOf(source: string): string {
  return source.replace(/(^|\/)README\.md$/, '$1index.html').replace(/\.(md|txt)$/, '.html');
}

function titleOf(markdown: string): string {
  const [, title = 'Untitled'] = /^# (.+)$/m.exec(markdown) ?? [];
  return title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '');
}

/** The link from a file of the site to another, without a host, so that the site works below any path. */
export function linkBetween(from: string, to: string): string {
  const link = path.posix.relative(path.posix.dirname(from), to).replace(/(^|\/)index\.html$/, '$1');
  return link === '' ? './' : link;
}

/** Where a link of a page leads: to a page, to a picture that is copied, or to the repository on the web. */
export function resolveLink(
  page: Page,
  href: string,
  pages: ReadonlyMap<string, Page>,
): { readonly href: string; readonly picture?: string } {
  if (/^([a-z]+:|\/\/|#)/i.test(href)) return { href };
  const [place = '', anchor] = href.split('#');
  const target = path.posix.join(path.posix.dirname(page.source), decodeURI(place)).replace(/\/$/, '');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  const readme = path.posix.join(target, 'README.md');
  const other = pages.get(target) ?? pages.get(readme);
  if (other) return { href: linkBetween(page.file, other.file) + hash };
  const isThere = existsSync(path.join(root, target));
  if (isThere && /\.(png|svg)$/.test(target))
    return { href: linkBetween(page.file, target), picture: target };
  const isFolder = isThere && statSync(path.join(root, target)).isDirectory();
  return { href: `${home}/${isFolder ? 'tree' : 'blob'}/main/${target}${hash}` };
}
