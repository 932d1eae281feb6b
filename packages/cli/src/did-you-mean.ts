import { nearest } from 'holdfast/fields';

/** The end of an error message: `; did you mean "orders"?`. It is empty if no candidate is similar. */
export function didYouMean(word: string, candidates: Iterable<string>, mark = '"'): string {
  const meant = nearest(word, [...candidates]);
  return meant === undefined ? '' : `; did you mean ${mark}${meant}${mark}?`;
}
