import { OptionsError } from '../report/errors.ts';

/**
 * Reads a list with the shortest and the longest time. A single value means both. `written` is the value in the
 * document, for the error message.
 */
export function rangeOf(
  path: string,
  values: readonly number[],
  written: unknown,
): readonly [least: number, most: number] {
  const [least, most = least] = values as readonly [number, number?];
  if (values.length > 2 || !(most >= least)) {
    throw new OptionsError(path, written, 'the shortest and the longest time, in this order');
  }
  return [least, most];
}
