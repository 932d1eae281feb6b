import { callback, duration, type Field, flag, text, word } from '../fields.ts';
import { readDuration } from '../policy/duration.ts';
import type { Priority, RunOptions } from '../policy/plan.ts';
import { OptionsError } from '../report/errors.ts';

/** How important each is; the least is first to wait. */
export const priorityRank: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

const name = /* @__PURE__ */ text();
const choice = /* @__PURE__ */ flag();
const fn = /* @__PURE__ */ callback();

const fields: Readonly<Record<keyof RunOptions, Field>> = {
  // Unlike that of a document it may be Infinity, which is what is left where nothing limits the work around it.
  patience: { ...duration(), read: (value) => (readDuration(value) >= 0 ? value : undefined) },
  signal: {
    kind: 'an AbortSignal',
    read: (value) => (typeof (value as AbortSignal).addEventListener === 'function' ? value : undefined),
  },
  target: name,
  targets: {
    kind: 'a list of texts',
    read: (value) => (Array.isArray(value) && value.every((each) => name.read(each, '')) ? value : undefined),
  },
  idempotent: choice,
  retryVeto: fn,
  classify: fn,
  priority: /* @__PURE__ */ word(undefined, ...(Object.keys(priorityRank) as Priority[])),
  cacheKey: name,
  ambient: choice,
  observed: choice,
  onWait: fn,
};

/**
 * The first of a run's options that is misspelt or means nothing. It is looked for in every run that has some: one that goes
 * unnoticed repeats what must not be, or makes a customer wait who asked not to. No settings are made of them, as of a
 * document: a run must not pay for that.
 */
export function runOptionsError(options: RunOptions): OptionsError | undefined {
  for (const key in options) {
    const value = options[key as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const field = fields[key as keyof RunOptions];
    // Asked for, as every object has a `constructor`, which is no field.
    if (field?.read?.(value, key) === undefined)
      return new OptionsError(key, value, field?.kind ?? `one of ${Object.keys(fields).join(', ')}`);
  }
  return undefined;
}
