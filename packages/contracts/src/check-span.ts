import { OptionsError } from 'holdfast';

/** For engines: a span of time that is none would be stored as one that never ends, or not at all. */
export function checkSpan(path: string, ms: number | undefined): void {
  if (ms !== undefined && !(typeof ms === 'number' && ms >= 0))
    throw new OptionsError(path, ms, 'a number of ms from 0');
}
