import { isObject } from './classify/is-object.ts';
import { type Duration, readDuration } from './policy/duration.ts';
import { OptionsError } from './report/errors.ts';

/**
 * One field of a policy document. Validation, JSON Schema, `explain` and the docs all read this definition, so that
 * they cannot disagree. `In` is the type in the document, `Out` is the type in the settings.
 */
export interface Field<In = unknown, Out = unknown> {
  /** What value the field expects, as part of a sentence: `a whole number`. */
  readonly kind: string;
  /** The value of an absent field. Undefined: the field stays absent. */
  readonly default?: In | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** The words that the field accepts, for example instead of a number, and the value that each word stands for. */
  readonly words?: Readonly<Record<string, unknown>> | undefined;
  /** The fields of a group. */
  readonly fields?: Table;
  /** The item of a list, or the alternatives of `either`. */
  readonly of?: readonly Field[];
  /** Converts a value of the document to a setting. Returns undefined if it is not what the field expects. */
  read(value: unknown, path: string): Out | undefined;
}

export type Table = Readonly<Record<string, Field>>;

/** The type of the document that a table of fields describes. */
export type SpecOf<T extends Table> = { -readonly [K in keyof T]?: InputOf<T[K]> | undefined };
/** The type of the settings that a table of fields gives. A group that is switched off is null. */
export type SettingsOf<T extends Table> = { readonly [K in keyof T]: OutputOf<T[K]> };
export type InputOf<F> = F extends Field<infer In, infer _> ? In : never;
export type OutputOf<F> = F extends Field<infer _, infer Out> ? Out : never;

type Words = Readonly<Record<string, number>>;

function amount<In>(
  kind: string,
  parse: (value: unknown) => number,
  defaultValue: In | undefined,
  words: Words | undefined,
  min = 0,
  max?: number,
): Field<In, number> {
  return {
    kind,
    default: defaultValue,
    words,
    min,
    max,
    read(value) {
      if (words && typeof value === 'string' && Object.hasOwn(words, value)) return words[value];
      const number = parse(value);
      // The comparison is written so that it refuses NaN, too.
      return number >= min && number <= (max ?? 1e300) ? number : undefined;
    },
  };
}

/** A duration, converted to ms, or one of `words` with the number it stands for: `{ unlimited: Infinity }`. */
export function duration(defaultValue?: Duration, words?: undefined, min?: number): Field<Duration, number>;
export function duration<const W extends Words>(
  defaultValue: Duration | NoInfer<keyof W> | undefined,
  words: W,
  min?: number,
): Field<Duration | keyof W, number>;
export function duration(defaultValue?: unknown, words?: Words, min?: number): Field<unknown, number> {
  return amount('a duration such as "200ms"', readDuration, defaultValue, words, min);
}

/** A number within [min, max]. */
export function number(defaultValue?: number, min?: number, max?: number): Field<number, number> {
  return amount(
    'a number',
    (value) => (typeof value === 'number' ? value : Number.NaN),
    defaultValue,
    undefined,
    min,
    max,
  );
}

/** A whole number of at least `min`. */
export function count(defaultValue?: number, min?: number): Field<number, number>;
export function count<const W extends Words>(
  defaultValue: number | NoInfer<keyof W> | undefined,
  min: number | undefined,
  words: W,
): Field<number | keyof W, number>;
export function count(defaultValue?: unknown, min?: number, words?: Words): Field<unknown, number> {
  return amount(
    'a whole number',
    (value) => (Number.isInteger(value) ? (value as number) : Number.NaN),
    defaultValue,
    words,
    min,
  );
}

/** A number per second, minute or hour: `'50/s'`, `'100/m'`. It is converted to the number per ms. */
export function rate(defaultValue?: Rate): Field<Rate, number> {
  const parse = (value: unknown) => {
    const [, times, unit] = /^([\d.]+)\/([smh])$/.exec(typeof value === 'string' ? value : '') ?? [];
    return Number(times) > 0 ? Number(times) / readDuration(`1${unit}`) : Number.NaN;
  };
  return amount('a rate such as "50/s"', parse, defaultValue, undefined);
}
export type Rate = `${number}/${'s' | 'm' | 'h'}`;

/** One of a list of words. */
export function word<const W extends string>(defaultValue: W | undefined, ...words: W[]): Field<W, W> {
  return {
    kind: `one of ${words.join(', ')}`,
    default: defaultValue,
    words: Object.fromEntries(words.map((each) => [each, each])),
    read: (value) => words.find((each) => each === value),
  };
}

/** A function: the only kind of value in a document that is not data. */
export function callback<F>(): Field<F, F> {
  return { kind: 'a function', read: (value) => (typeof value === 'function' ? (value as F) : undefined) };
}

/** An object with fields of its own. */
export function shape<T extends Table>(fields: T): Field<SpecOf<T>, SettingsOf<T>> {
  return {
    kind: 'an object',
    fields,
    read: (value, path) => (isDocument(value) ? readTable(fields, value, `${path}.`) : undefined),
  };
}

/**
 * A group of fields that can be switched. `true`: on with all defaults. `false`: off, and the setting is null. An
 * object: on with these fields.
 */
export function group<T extends Table>(
  fields: T,
  defaultValue?: SpecOf<T> | boolean,
): Field<SpecOf<T> | boolean, SettingsOf<T> | null> {
  const { kind, read } = shape(fields);
  return {
    kind: `true, false or ${kind}`,
    default: defaultValue,
    fields,
    read: (value, path) => (value === false ? null : read(value === true ? {} : value, path)),
  };
}

/** Any number of items, or a single one. */
export function list<In, Out>(
  item: Field<In, Out>,
  defaultValue?: readonly In[],
): Field<readonly In[] | In, readonly Out[]> {
  return {
    kind: `a list, each ${item.kind}`,
    default: defaultValue,
    of: [item],
    read: (value, path) => [value].flat().map((each, index) => readField(item, each, `${path}[${index}]`)),
  };
}

/** Reads a value with the first alternative that accepts it. */
export function either<F extends readonly Field[]>(
  defaultValue: InputOf<F[number]> | undefined,
  ...of: F
): Field<InputOf<F[number]>, OutputOf<F[number]>> {
  return {
    kind: of.map(({ kind }) => kind).join(' or '),
    default: defaultValue,
    of,
    read(value, path) {
      for (const each of of) {
        const read = each.read(value, path);
        if (read !== undefined) return read as OutputOf<F[number]>;
      }
      return undefined;
    },
  };
}

/** True or false. Texts are refused, because as a condition `'false'` would be true. */
export function flag(defaultValue?: boolean): Field<boolean, boolean> {
  return {
    kind: 'true or false',
    default: defaultValue,
    read: (value) => (typeof value === 'boolean' ? value : undefined),
  };
}

/** A string that is not empty. */
export function text(defaultValue?: string): Field<string, string> {
  return {
    kind: 'a text',
    default: defaultValue,
    read: (value) => (typeof value === 'string' && value ? value : undefined),
  };
}

/** Any value, passed on unchanged. */
export function anything<T = unknown>(): Field<T, T> {
  return { kind: 'anything', read: (value) => value as T };
}

/** Whether a value is an object with fields. */
export function isDocument(value: unknown): value is object {
  return isObject(value) && !Array.isArray(value);
}

/**
 * Throws an `OptionsError` for a key that is not in `known`. Otherwise a misspelt name would silently leave the
 * default.
 */
export function assertKnownFields(known: object, input: object, path = ''): void {
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(known, key)) {
      throw new OptionsError(path + key, input[key as never], `one of ${Object.keys(known).join(', ')}`);
    }
  }
}

/**
 * Reads a document by a table of fields: adds defaults, and converts words and durations to numbers. Throws an
 * `OptionsError`.
 */
export function readTable<T extends Table>(fields: T, input: object, path = ''): SettingsOf<T> {
  assertKnownFields(fields, input, path);
  const settings: Record<string, unknown> = {};
  for (const key in fields) {
    const field = fields[key] as Field;
    const value: unknown = (input as Record<string, unknown>)[key] ?? field.default;
    settings[key] = value === undefined ? value : readField(field, value, path + key);
  }
  // Returns a copy, because the JavaScript engine treats an object whose keys were added one by one as a hash table,
  // which is slow to read.
  return { ...settings } as SettingsOf<T>;
}

function readField<Out>(field: Field<unknown, Out>, value: unknown, path: string): Out {
  const read = field.read(value, path);
  if (read !== undefined) return read;
  const { kind, words, min, max } = field;
  const atLeast = min ? ` of at least ${min}` : '';
  const atMost = max ? ` up to ${max}` : '';
  const instead = words && !kind.includes('one of') ? ` or "${Object.keys(words).join('" or "')}"` : '';
  throw new OptionsError(path, value, kind + atLeast + atMost + instead);
}
