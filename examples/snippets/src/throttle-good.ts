import { policy } from 'holdfast';

/** A shared service that refuses what it cannot take: we send at most twice what it accepts. */
export const search = policy({ throttle: { k: 2 } });

export function find(words: string): Promise<Response> {
  return search.run(({ signal }) => fetch(`https://search.test/?q=${words}`, { signal }));
}
