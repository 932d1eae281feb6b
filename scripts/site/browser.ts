import MiniSearch, { type SearchResult } from 'minisearch';
import { type Entry, searchOptions } from './search.ts';

/** The script of every page: search, the theme, and keys for what scrolls sideways. Without it the pages still work. */
const resultsMax = 12;
const here = new URL('.', import.meta.url);
const form = document.querySelector<HTMLFormElement>('.search')!;
const input = form.querySelector('input')!;
const results = document.querySelector<HTMLElement>('#results')!;
const status = results.querySelector('p')!;
const list = results.querySelector('ol')!;
const theme = document.querySelector<HTMLButtonElement>('.theme')!;
let loading: Promise<MiniSearch<Entry>> | undefined;

form.hidden = false;
theme.hidden = false;
const chosen = localStorage.getItem('holdfast-theme');
if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
theme.addEventListener('click', () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  localStorage.setItem('holdfast-theme', root.dataset.theme);
});

input.addEventListener('focus', () => void index());
input.addEventListener('input', () => void show());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void show().then(() => links()[0]?.click());
});
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select');
  if (event.key === '/' && !isTyping) {
    event.preventDefault();
    input.select();
  } else if (event.key === 'Escape' && !results.hidden) {
    results.hidden = true;
    input.focus();
  } else if (
    (event.key === 'ArrowDown' || event.key === 'ArrowUp') &&
    form.contains(document.activeElement)
  ) {
    event.preventDefault();
    step(event.key === 'ArrowDown' ? 1 : -1);
  }
});
document.addEventListener('click', ({ target }) => {
  const isResult = target instanceof Element && target.closest('#results a') !== null;
  if (isResult || !form.contains(target as Node)) results.hidden = true;
});

// A browser gives keys to what can be scrolled; axe and older browsers want it said.
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries)
    if (target.scrollWidth > target.clientWidth) target.setAttribute('tabindex', '0');
    else target.removeAttribute('tabindex');
});
for (const each of document.querySelectorAll('pre, .scroll')) observer.observe(each);
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });

/** Loads the index when somebody is about to search, once. After a failure the next search tries again. */
function index(): Promise<MiniSearch<Entry>> {
  loading ??= fetch(new URL('search.json', here))
    .then((response) => response.text())
    .then((json) => MiniSearch.loadJSONAsync<Entry>(json, searchOptions));
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}

async function show(): Promise<void> {
  const asked = input.value.trim();
  if (asked === '') {
    results.hidden = true;
    return;
  }
  try {
    const found = (await index()).search(asked);
    // Somebody types on while the index loads: only the last words count.
    if (input.value.trim() !== asked) return;
    status.textContent =
      found.length === 0
        ? `Nothing has "${asked}".`
        : `${found.length} found. Arrow keys choose, Enter opens.`;
    list.replaceChildren(...found.slice(0, resultsMax).map(item));
  } catch {
    status.textContent = 'The search index could not be loaded.';
    list.replaceChildren();
  }
  results.hidden = false;
}

function item({ url, title, heading, excerpt }: SearchResult): HTMLLIElement {
  const link = document.createElement('a');
  link.href = new URL(url, here).href;
  const name = document.createElement('b');
  name.textContent = heading === title ? title : `${title} › ${heading}`;
  const says = document.createElement('small');
  says.textContent = excerpt;
  link.append(name, says);
  const made = document.createElement('li');
  made.append(link);
  return made;
}

function links(): HTMLAnchorElement[] {
  return [...list.querySelectorAll('a')];
}

function step(by: number): void {
  const stops: HTMLElement[] = [input, ...links()];
  const at = stops.indexOf(document.activeElement as HTMLElement);
  stops[(at + by + stops.length) % stops.length]?.focus();
}
