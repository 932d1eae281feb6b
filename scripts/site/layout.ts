import type { Part } from './markdown.ts';
import { home, linkBetween, type Page, sections } from './pages.ts';

export interface Frame {
  readonly pages: readonly Page[];
  readonly parts: readonly Part[];
  /** Files of the bundle, by their names in the site. */
  readonly script: string;
  readonly styles: string;
}

/** The headings of a page that the navigation shows below its name, at most. */
const headingsMax = 40;

/** A whole page around its content. It has no inline script and no inline style: the console allows none. */
export function layout(page: Page, content: string, { pages, parts, script, styles }: Frame): string {
  const to = (file: string) => escaped(linkBetween(page.file, file));
  const title = page.file === 'index.html' ? 'Holdfast help' : `${page.title} · Holdfast help`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="${to('icon.svg')}">
<link rel="stylesheet" href="${to(styles)}">
<script type="module" src="${to(script)}"></script>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header class="top">
<button type="button" class="btn menu" popovertarget="pages">Pages</button>
<a class="brand" href="${to('index.html')}"><img src="${to('icon.svg')}" alt="" width="22" height="22">Holdfast help</a>
<form class="search" role="search" hidden>
<label class="unseen" for="search">Search the help</label>
<input id="search" type="search" placeholder="Search" autocomplete="off" aria-controls="results">
<kbd>/</kbd>
<div id="results" hidden><p role="status"></p><ol></ol></div>
</form>
<button type="button" class="btn theme" hidden>Theme</button>
</header>
<nav id="pages" popover aria-label="Pages">
${sections.map((each) => section(each)).join('')}</nav>
<main id="main" tabindex="-1">
<article>
${content}</article>
<footer><a href="${escaped(sourceOf(page))}">The source of this page</a></footer>
</main>
</body>
</html>
`;

  function section(name: (typeof sections)[number]): string {
    const own = pages.filter((each) => each.section === name);
    if (own.length === 0) return '';
    const isOpen = page.section === name;
    return `<details${isOpen ? ' open' : ''}><summary>${name}</summary><ul>\n${own.map(item).join('')}</ul></details>\n`;
  }

  function item(other: Page): string {
    const name = escaped(nameOf(other));
    if (other !== page) return `<li><a href="${to(other.file)}">${name}</a></li>\n`;
    const headings = parts.filter((each) => each.page === page && each.level === 2).slice(0, headingsMax);
    const below = headings.map(
      ({ anchor, heading }) => `<li><a href="#${escaped(anchor)}">${escaped(heading)}</a></li>`,
    );
    const list = below.length === 0 ? '' : `<ul>${below.join('\n')}</ul>`;
    return `<li><a href="${to(other.file)}" aria-current="page">${name}</a>${list}</li>\n`;
  }
}

function nameOf({ source, title }: Page): string {
  return /^docs\/\w+\/README\.md$/.test(source)
    ? `${title}: overview`.replace(/^(.{40,}): overview$/, '$1')
    : title;
}

function sourceOf({ source }: Page): string {
  return `${home}/blob/main/${source}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
