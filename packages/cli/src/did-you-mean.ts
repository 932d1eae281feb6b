import { nearest } from 'holdfast/fields';

/** The end of a sentence about an unknown word: `; did you mean "orders"?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>, mark = '"'): string {
  const meant = nearest(word, [...candidates]);
  return meant === undefined ? '' : `; did you mean ${mark}${meant}${mark}?`;
}
