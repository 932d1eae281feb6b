import { useLocation } from 'preact-iso';

type Words = Readonly<Record<string, string | undefined>>;

/** The words of the URL: filters, tabs and open dialogs are there, so that a link shows the same. */
export function useQuery() {
  const { path, query, route } = useLocation();

  /** This screen with some words changed; `undefined` takes a word away. */
  function href(changes: Words): string {
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, ...changes }))
      if (value !== undefined && value !== '') words.set(name, value);
    return words.size > 0 ? `${path}?${words}` : path;
  }

  return {
    query: query as Readonly<Record<string, string | undefined>>,
    href,
    go: (changes: Words) => route(href(changes)),
    /** Changes words without a new entry in the history. */
    replace: (changes: Words) => route(href(changes), true),
  };
}
