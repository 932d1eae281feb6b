import { useLocation } from 'preact-iso';

type Words = Readonly<Record<string, string | undefined>>;

/** Filters, tabs and open dialogs are query parameters of the URL, so that a link shows the same. */
export function useQuery() {
  const { path, query, route } = useLocation();

  /** The value `undefined` removes a query parameter. */
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
    /** Changes query parameters without a new entry in the browser history. */
    replace: (changes: Words) => route(href(changes), true),
  };
}
