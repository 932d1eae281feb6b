import highlight from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import typescript from 'highlight.js/lib/languages/typescript';
import yaml from 'highlight.js/lib/languages/yaml';
import { type Page, resolveLink } from './pages.ts';

/** A part of a page, from one heading to the next: what a search finds. */
export interface Part {
  readonly page: Page;
  readonly level: number;
  /** The fragment of its link. */
  readonly anchor: string;
  readonly heading: string;
  readonly text: string;
}

interface Token {
  readonly type: string;
  tag: string;
  readonly content: string;
  readonly children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

interface BlockState {
  readonly src: string;
  readonly bMarks: readonly number[];
  readonly tShift: readonly number[];
  readonly eMarks: readonly number[];
  line: number;
}

type Render = (tokens: Token[], at: number) => string;

/** What we use of markdown-it, which Eleventy brings. */
export interface Markdown {
  set(options: object): void;
  enable(rule: string): void;
  readonly core: { readonly ruler: { push(name: string, rule: (state: CoreState) => void): void } };
  readonly block: {
    readonly ruler: {
      before(
        name: string,
        own: string,
        rule: (state: BlockState, start: number, end: number, isTry: boolean) => boolean,
        options: object,
      ): void;
    };
  };
  readonly renderer: { readonly rules: Record<string, Render> };
}

interface CoreState {
  readonly tokens: Token[];
  readonly env: { readonly source: string };
}

export interface Findings {
  readonly parts: Part[];
  /** Pictures that pages show, by their path in the repository. */
  readonly pictures: Set<string>;
}

for (const [name, language] of Object.entries({ bash, json, typescript, yaml }))
  highlight.registerLanguage(name, language);
const languages: Readonly<Record<string, string>> = {
  ...{ ts: 'typescript', typescript: 'typescript', js: 'typescript', sh: 'bash', bash: 'bash' },
  ...{ json: 'json', yaml: 'yaml', yml: 'yaml' },
};

/** Makes markdown-it write pages of the site: links between pages, anchors, no raw HTML, no inline styles. */
export function amendMarkdown(
  markdown: Markdown,
  pages: ReadonlyMap<string, Page>,
  findings: Findings,
): void {
  markdown.set({ html: false, highlight: highlighted });
  markdown.enable('code');
  markdown.block.ruler.before('paragraph', 'comment', skipComment, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });
  markdown.core.ruler.push('site', ({ tokens, env }) => {
    const page = pages.get(env.source)!;
    nameHeadings(tokens);
    for (const token of tokens)
      for (const child of token.children ?? []) relink(child, page, pages, findings);
    findings.parts.push(...partsOf(tokens, page));
  });
  Object.assign(markdown.renderer.rules, {
    table_open: () => '<div class="scroll"><table>\n',
    table_close: () => '</table></div>\n',
    // Alignment of cells is a class: the content policy allows no `style`.
    th_open: cellOf('th'),
    td_open: cellOf('td'),
  } satisfies Record<string, Render>);
}

function cellOf(tag: string): Render {
  return (tokens, at) => {
    const [, side] = /text-align:(\w+)/.exec(tokens[at]!.attrGet('style') ?? '') ?? [];
    return side === undefined ? `<${tag}>` : `<${tag} class="${side}">`;
  };
}

function highlighted(code: string, name: string): string {
  const language = languages[name];
  return language === undefined ? '' : highlight.highlight(code, { language }).value;
}

/** Comments mark what scripts write into a document. They are not for readers. */
function skipComment(state: BlockState, start: number, end: number, isTry: boolean): boolean {
  const lineOf = (line: number) =>
    state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line]);
  if (!lineOf(start).startsWith('<!--')) return false;
  let last = start;
  while (last < end && !lineOf(last).includes('-->')) last++;
  if (last === end) return false;
  if (!isTry) state.line = last + 1;
  return true;
}

/** Headings get the anchors that GitHub gives them. A page has one `h1`: a second becomes an `h2`. */
function nameHeadings(tokens: readonly Token[]): void {
  const used = new Map<string, number>();
  let titles = 0;
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_close' && token.tag === 'h1' && titles > 1) token.tag = 'h2';
    if (token.type !== 'heading_open') continue;
    if (token.tag === 'h1' && ++titles > 1) token.tag = 'h2';
    const anchor = anchorOf(textOf(tokens[at + 1]!));
    const times = used.get(anchor) ?? 0;
    used.set(anchor, times + 1);
    token.attrSet('id', times === 0 ? anchor : `${anchor}-${times}`);
  }
}

function anchorOf(heading: string): string {
  const kept = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '');
  return kept.trim().replaceAll(/\s/g, '-');
}

function relink(token: Token, page: Page, pages: ReadonlyMap<string, Page>, { pictures }: Findings): void {
  const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined;
  if (name === undefined) return;
  const { href, picture } = resolveLink(page, token.attrGet(name)!, pages);
  token.attrSet(name, href);
  if (picture !== undefined) pictures.add(picture);
}

function partsOf(tokens: readonly Token[], page: Page): Part[] {
  const parts: { page: Page; level: number; anchor: string; heading: string; text: string }[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const heading = textOf(tokens[at + 1]!);
      const level = Number(token.tag.slice(1));
      parts.push({ page, level, anchor: token.attrGet('id')!, heading, text: '' });
    } else if (
      tokens[at - 1]?.type !== 'heading_open' &&
      (token.type === 'inline' || token.type === 'fence')
    ) {
      const part = parts.at(-1);
      if (part) part.text += `${textOf(token)} `;
    }
  }
  return parts;
}

function textOf(token: Token): string {
  if (!token.children) return token.content;
  return token.children.map((each) => (/break/.test(each.type) ? ' ' : each.content)).join('');
}
