import { readDuration } from './duration.ts';
import { OptionsError } from './errors.ts';
import type { Priority, RunOptions } from './plan.ts';

type Kind = readonly [says: string, isOne: (value: unknown) => boolean];

const text: Kind = ['a text', (value) => typeof value === 'string'];
const flag: Kind = ['true or false', (value) => typeof value === 'boolean'];
const callback: Kind = ['a function', (value) => typeof value === 'function'];

const kinds: Readonly<Record<keyof RunOptions, Kind>> = {
  patience: ['a duration such as "200ms"', (value) => readDuration(value) >= 0],
  signal: ['an AbortSignal', (value) => typeof (value as AbortSignal).addEventListener === 'function'],
  target: text,
  targets: ['a list of texts', (value) => Array.isArray(value) && value.every(text[1])],
  idempotent: flag,
  barred: callback,
  classify: callback,
  priority: ['critical, default or sheddable', (value) => Object.hasOwn(ranks, value as Priority)],
  cacheKey: text,
  ambient: flag,
  observed: flag,
  onWait: callback,
};

/** How important each is; the least is first to wait. */
export const ranks: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

/**
 * The first of a run's options that is misspelt or means nothing. It is looked for in every run that has some: one that goes
 * unnoticed repeats what must not be, or makes a customer wait who asked not to.
 */
export function wrongIn(options: RunOptions): OptionsError | undefined {
  for (const name in options) {
    const value = options[name as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const [says, isOne] = kinds[name as keyof RunOptions] ?? [`one of ${Object.keys(kinds).join(', ')}`];
    if (!isOne?.(value)) return new OptionsError(name, value, says);
  }
  return undefined;
}
