import { isObject } from './classify/is-object.ts';
import { type Duration, readDuration } from './policy/duration.ts';
import { OptionsError } from './report/errors.ts';

/**
 * One line of a part's table. Validation, JSON Schema, `explain` and the docs all read the same line, so that
 * they cannot disagree. `In` is what a document may say, `Out` what the part gets.
 */
export interface Field<In = unknown, Out = unknown> {
  /** What it expects, as a person would say it. */
  readonly kind: string;
  /** What an absent field means; undefined: the field stays absent. */
  readonly default?: In | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** The words that may be said, or may be said instead of a number, with what each means. */
  readonly words?: Readonly<Record<string, unknown>> | undefined;
  /** Of a group, its fields. */
  readonly fields?: Table;
  /** Of a list, its item; of `either`, the alternatives. */
  readonly of?: readonly Field[];
  /** The value as the part gets it; undefined: this is not what the field expects. */
  read(value: unknown, path: string): Out | undefined;
}

export type Table = Readonly<Record<string, Field>>;

/** What a document may say, by its table. */
export type SpecOf<T extends Table> = { -readonly [K in keyof T]?: InputOf<T[K]> | undefined };
/** What a part gets, by its table. A group that is switched off is null. */
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
      // Written so that NaN is refused too.
      return number >= min && number <= (max ?? 1e300) ? number : undefined;
    },
  };
}

/** A duration in ms. `words` maps what may be said instead ('unlimited') to its number. */
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

/** So many in so long: `'50/s'`, `'100/m'`. The part gets a rate in ms⁻¹. */
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

/** A function given on purpose: the only thing in a document that is not data. */
export function callback<F>(): Field<F, F> {
  return { kind: 'a function', read: (value) => (typeof value === 'function' ? (value as F) : undefined) };
}

/** Fields of their own. */
export function shape<T extends Table>(fields: T): Field<SpecOf<T>, SettingsOf<T>> {
  return {
    kind: 'an object',
    fields,
    read: (value, path) => (isDocument(value) ? readTable(fields, value, `${path}.`) : undefined),
  };
}

/** A part that can be switched: `true` asks for all its defaults, `false` is null, an object says some of its fields. */
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

/** The first alternative that recognises the value. */
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

/** True or false, and no word that only looks like one of them: `'false'` would be true. */
export function flag(defaultValue?: boolean): Field<boolean, boolean> {
  return {
    kind: 'true or false',
    default: defaultValue,
    read: (value) => (typeof value === 'boolean' ? value : undefined),
  };
}

/** A text that is not empty. */
export function text(defaultValue?: string): Field<string, string> {
  return {
    kind: 'a text',
    default: defaultValue,
    read: (value) => (typeof value === 'string' && value ? value : undefined),
  };
}

/** Whatever the user gives; it is passed on untouched. */
export function anything<T = unknown>(): Field<T, T> {
  return { kind: 'anything', read: (value) => value as T };
}

/** Whether something has fields to be read. */
export function isDocument(value: unknown): value is object {
  return isObject(value) && !Array.isArray(value);
}

/** A misspelt name would leave a default in force, and nobody would know. Throws an `OptionsError`. */
export function refuseUnknown(known: object, input: object, path = ''): void {
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(known, key)) {
      throw new OptionsError(path + key, input[key as never], `one of ${Object.keys(known).join(', ')}`);
    }
  }
}

/** Reads a document by a table: defaults filled in, words and durations as numbers. Throws an `OptionsError`. */
export function readTable<T extends Table>(fields: T, input: object, path = ''): SettingsOf<T> {
  refuseUnknown(fields, input, path);
  const settings: Record<string, unknown> = {};
  for (const key in fields) {
    const field = fields[key] as Field;
    const value: unknown = (input as Record<string, unknown>)[key] ?? field.default;
    settings[key] = value === undefined ? value : readField(field, value, path + key);
  }
  // A copy, because an object that got many keys one by one is a hash table to the engine, and this is read all the time.
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
