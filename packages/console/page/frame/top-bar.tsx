import { useLocation } from 'preact-iso';
import { isHeld, isStale, setHeld, waitingLines } from '../live.ts';

export function TopBar({ showKeys }: { readonly showKeys: () => void }) {
  const { route } = useLocation();
  const held = isHeld.value;
  return (
    <header class="top">
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const text = new FormData(event.currentTarget).get('text');
          route(searchUrl(String(text ?? '')));
        }}
      >
        <svg
          viewBox="0 0 16 16"
          width="14"
          height="14"
          fill="none"
          stroke="currentColor"
          stroke-width="1.6"
          aria-hidden="true"
        >
          <circle cx="7" cy="7" r="4.5" />
          <path d="m10.5 10.5 4 4" />
        </svg>
        <label class="unseen" for="search">
          Search parked events
        </label>
        <input
          id="search"
          name="text"
          placeholder="An id, a key, a tenant, a word of an error"
          type="search"
        />
        <kbd class="wide">/</kbd>
      </form>
      <div class="right">
        <span class="live" data-state={isStale.value ? 'stale' : held ? 'held' : 'live'}>
          <i />
          {isStale.value ? 'not connected' : held ? 'held' : 'live'}
        </span>
        <button type="button" class="btn tiny" aria-pressed={held} onClick={() => setHeld(!held)}>
          {held ? `Go on${waitingLines.value > 0 ? ` · ${waitingLines.value} new` : ''}` : 'Hold'}
          <kbd class="wide">.</kbd>
        </button>
        <button type="button" class="btn tiny bare wide" onClick={switchTheme}>
          Theme
        </button>
        <button type="button" class="btn tiny bare wide" onClick={showKeys}>
          Keys <kbd>?</kbd>
        </button>
      </div>
    </header>
  );
}

/**
 * Converts a search text to a URL. Words such as `tenant:acme` become filters. All other words are searched
 * in ids, keys, messages and payloads.
 */
function searchUrl(text: string): string {
  const words = new URLSearchParams();
  const rest: string[] = [];
  for (const word of text.trim().split(/\s+/)) {
    const [, name, value] =
      /^(-?(?:topic|type|key|tenant|reason|stop|group|consumer|header)):(.+)$/.exec(word) ?? [];
    if (name !== undefined && value !== undefined) words.append(name, value);
    else if (word !== '') rest.push(word);
  }
  if (rest.length > 0) words.append('text', rest.join(' '));
  return `/parked?view=events&${words}`;
}

export function switchTheme(): void {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  localStorage.setItem('holdfast-theme', root.dataset.theme);
}

/** The theme in the URL, such as `?theme=dark`, comes before the last choice of the user. */
export function startTheme(): void {
  const asked = new URLSearchParams(location.search).get('theme') ?? localStorage.getItem('holdfast-theme');
  if (asked === 'dark' || asked === 'light') document.documentElement.dataset.theme = asked;
}
