import { isObject } from './classify/is-object.ts';
import { type Duration, readDuration } from './policy/duration.ts';
import { nearest } from './policy/nearest.ts';
import { peerWord } from './policy/peer-words.ts';
import { OptionsError } from './report/errors.ts';

export { nearest };

/**
 * The definition of one field of a policy document. A value of type `In` in the document is converted to a
 * setting of type `Out`. Validation, JSON Schema, `explain` and the docs all use this definition.
 */
export interface Field<In = unknown, Out = unknown> {
  /** Says which values the field accepts. Error messages contain this text: `a whole number`. */
  readonly kind: string;
  /** The value that is used when the document omits the field. */
  readonly default?: In | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** The words that the field accepts, each with its value: `{ unlimited: Infinity }`. */
  readonly words?: Readonly<Record<string, unknown>> | undefined;
  /** Only for an object: the fields inside it. */
  readonly fields?: Table;
  /** For a list: the definition of its items, as the only element. For `either`: the alternatives. */
  readonly of?: readonly Field[];
  /**
   * Converts a value of the document to a setting. Returns undefined if the field does not accept the value.
   */
  read(value: unknown, path: string): Out | undefined;
}

/** The definitions of all fields of a document, by field name. */
export type Table = Readonly<Record<string, Field>>;

/** The type of the document that a table of fields describes. */
export type SpecOf<T extends Table> = { -readonly [K in keyof T]?: InputOf<T[K]> | undefined };
/**
 * The type of the settings that `readTable` returns for a table of fields. A group that is switched off is
 * null.
 */
export type SettingsOf<T extends Table> = { readonly [K in keyof T]: OutputOf<T[K]> };
/**
 * The type of a table of fields that reads documents of type `Spec`. Use it with `satisfies`: then the
 * compiler checks that the table and `Spec` agree.
 */
export type FieldsOf<Spec> = { readonly [K in keyof Spec]-?: Field<Exclude<Spec[K], undefined>> };
/** The type of the values that a document may contain in the field `F`. */
export type InputOf<F> = F extends Field<infer In, infer _> ? In : never;
/** The type of the setting that the field `F` is converted to. */
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
      // The comparison also refuses NaN, because every comparison with NaN is false.
      return number >= min && number <= (max ?? 1e300) ? number : undefined;
    },
  };
}

/**
 * A field for a duration. The setting is in ms. `words` adds words and their ms: `{ unlimited: Infinity }`.
 */
export function duration(defaultValue?: Duration, words?: undefined, min?: number): Field<Duration, number>;
export function duration<const W extends Words>(
  defaultValue: Duration | NoInfer<keyof W> | undefined,
  words: W,
  min?: number,
): Field<Duration | keyof W, number>;
export function duration(defaultValue?: unknown, words?: Words, min?: number): Field<unknown, number> {
  return amount('a duration such as "200ms"', readDuration, defaultValue, words, min);
}

/** A field for a number from `min` to `max`. */
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

/** A field for a whole number of at least `min`. */
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

/** A field for a rate per second, minute or hour: `'50/s'`, `'100/m'`. The setting is the number per ms. */
export function rate(defaultValue?: Rate): Field<Rate, number> {
  const parse = (value: unknown) => {
    const [, times, unit] = /^([\d.]+)\/([smh])$/.exec(typeof value === 'string' ? value : '') ?? [];
    return Number(times) > 0 ? Number(times) / readDuration(`1${unit}`) : Number.NaN;
  };
  return amount('a rate such as "50/s"', parse, defaultValue, undefined);
}
/** A number per second, minute or hour, such as `10/s`. */
export type Rate = `${number}/${'s' | 'm' | 'h'}`;

/** A field that accepts only the given words. */
export function word<const W extends string>(defaultValue: W | undefined, ...words: W[]): Field<W, W> {
  return {
    kind: `one of ${words.join(', ')}`,
    default: defaultValue,
    words: Object.fromEntries(words.map((each) => [each, each])),
    read: (value) => words.find((each) => each === value),
  };
}

/** A field for a function. */
export function callback<F>(): Field<F, F> {
  return { kind: 'a function', read: (value) => (typeof value === 'function' ? (value as F) : undefined) };
}

/** A field for an object that has fields of its own. */
export function shape<T extends Table>(fields: T): Field<SpecOf<T>, SettingsOf<T>> {
  return {
    kind: 'an object',
    fields,
    read: (value, path) => (isDocument(value) ? readTable(fields, value, `${path}.`) : undefined),
  };
}

/**
 * A field for an object that can also be `true` (use the defaults) or `false` (switched off). The setting for `false`
 * is null.
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

/** A field for a list. A single value is accepted, and is read as a list with one item. */
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

/** A field with several alternative definitions. The first definition that accepts the value converts it. */
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

/** A field for true or false. It refuses strings, because JavaScript treats the string `'false'` as true. */
export function flag(defaultValue?: boolean): Field<boolean, boolean> {
  return {
    kind: 'true or false',
    default: defaultValue,
    read: (value) => (typeof value === 'boolean' ? value : undefined),
  };
}

/** A field for a string that is not empty. */
export function text(defaultValue?: string): Field<string, string> {
  return {
    kind: 'a text',
    default: defaultValue,
    read: (value) => (typeof value === 'string' && value ? value : undefined),
  };
}

/** A field that accepts any value and does not change it. */
export function anything<T = unknown>(): Field<T, T> {
  return { kind: 'anything', read: (value) => value as T };
}

/** Whether a value is an object and not an array. */
export function isDocument(value: unknown): value is object {
  return isObject(value) && !Array.isArray(value);
}

/**
 * Throws an `OptionsError` for a key of `input` that is not in `known`. Without this check, a misspelt key
 * would silently have no effect.
 */
export function assertKnownFields(known: object, input: object, path = '', elsewhere?: Elsewhere): void {
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(known, key)) throw unknownField(known, key, input[key as never], path, elsewhere);
  }
}

/** Where else a user may have wanted to write an option: the fields there, and the name of the function. */
export type Elsewhere = readonly [fields: object, place: string];

/**
 * Returns the error for a key that is not in `known`. The message suggests the name that was probably meant. If
 * it is a field `elsewhere`, the message says where.
 */
export function unknownField(
  known: object,
  key: string,
  value: unknown,
  path = '',
  [fields, place]: Elsewhere = [[], ''],
): OptionsError {
  const names = Object.keys(known);
  const others = Object.keys(fields);
  const there = others.includes(key) ? key : peerWord(key, value, others);
  const meant = peerWord(key, value, names) ?? (there ? `${there}, in ${place}` : nearest(key, names));
  return new OptionsError(path + key, value, names.join(', '), meant, true);
}

/**
 * Calls `read`. If it throws an `OptionsError`, adds `path` in front of the path in the error: `policy` and
 * `attempts` become `policy.attempts`. An error whose path already equals `path` stays unchanged.
 */
export function atPath<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof OptionsError) || error.path === path) throw error;
    const { value, expected, meant, isUnknown } = error;
    throw new OptionsError(`${path}.${error.path}`, value, expected, meant, isUnknown);
  }
}

/**
 * Converts a document to settings: checks each field, adds defaults, and converts words and durations to
 * numbers. Throws an `OptionsError` for a wrong value or an unknown field.
 */
export function readTable<T extends Table>(
  fields: T,
  input: object,
  path = '',
  elsewhere?: Elsewhere,
): SettingsOf<T> {
  assertKnownFields(fields, input, path, elsewhere);
  const settings: Record<string, unknown> = {};
  for (const key in fields) {
    const field = fields[key] as Field;
    const value: unknown = (input as Record<string, unknown>)[key] ?? field.default;
    settings[key] = value === undefined ? value : readField(field, value, path + key);
  }
  // V8 makes an object slow if its keys are added one by one. The copy is faster to read.
  return { ...settings } as SettingsOf<T>;
}

function readField<Out>(field: Field<unknown, Out>, value: unknown, path: string): Out {
  const read = field.read(value, path);
  if (read !== undefined) return read;
  const { kind, words, min, max } = field;
  const range = max !== undefined ? ` from ${min ?? 0} to ${max}` : min ? ` of at least ${min}` : '';
  const instead = words && !kind.includes('one of') ? ` or "${Object.keys(words).join('" or "')}"` : '';
  throw new OptionsError(path, value, kind + range + instead);
}
