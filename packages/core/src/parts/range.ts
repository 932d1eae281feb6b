import { OptionsError } from '../report/errors.ts';

/** The shortest and the longest of something; where one is said, both. */
export function rangeOf(path: string, said: readonly number[]): readonly [least: number, most: number] {
  const [least, most = least] = said as readonly [number, number?];
  if (said.length > 2 || !(most >= least)) {
    throw new OptionsError(path, said, 'the shortest and the longest time, in this order');
  }
  return [least, most];
}
