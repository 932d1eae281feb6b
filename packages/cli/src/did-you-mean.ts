import { nearest } from 'holdfast/fields';

/**
 * Returns the end of an error message about an unknown word: `; did you mean "orders"?`. Returns nothing if
 * no candidate is similar.
 */
export function didYouMean(word: string, candidates: Iterable<string>, mark = '"'): string {
  const meant = nearest(word, [...candidates]);
  return meant === undefined ? '' : `; did you mean ${mark}${meant}${mark}?`;
}
