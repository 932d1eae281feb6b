import { policy } from 'holdfast';

/** With a k of 1 every single failure costs a call that would have been accepted. */
export const timid = policy({ throttle: { k: 1 } });

export function find(words: string): Promise<Response> {
  return timid.run(({ signal }) => fetch(`https://search.test/?q=${words}`, { signal }));
}
