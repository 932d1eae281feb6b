import type { Options } from 'minisearch';

/** A part of a page, as the index has it. */
export interface Entry {
  readonly id: number;
  /** From the top of the site: `docs/events.html#parking`. */
  readonly url: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  /** The first words of the text. */
  readonly excerpt: string;
}

/** How the index is made and asked. The build and the page must agree on it. */
export const searchOptions: Options<Entry> = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['url', 'title', 'heading', 'excerpt'],
  searchOptions: {
    boost: { title: 3, heading: 2 },
    combineWith: 'AND',
    // Lists of names have every word; a page that explains one comes first.
    boostDocument: (_id, _term, stored) => (/^docs\/reference\/api\//.test(String(stored?.url)) ? 0.2 : 1),
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.15 : false),
  },
};
