import { OptionsError } from 'holdfast';
import {
  type Field,
  type InputOf,
  type OutputOf,
  readTable,
  type SettingsOf,
  type Table,
} from 'holdfast/fields';
import { ConfigError, type Problem } from './config-error.ts';
import { readDocument, type SourceDocument } from './document.ts';

/** A field that is a map. The author of the document chooses the keys; all values are of the same kind. */
export function mapOf<F extends Field>(
  item: F,
  defaultValue?: Readonly<Record<string, InputOf<F>>>,
): Field<Readonly<Record<string, InputOf<F>>>, Readonly<Record<string, OutputOf<F>>>> {
  return {
    kind: 'a map of names',
    default: defaultValue,
    of: [item],
    read(value, path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      const read = Object.entries(value).map(([name, each]) => {
        const one = item.read(each, `${path}.${name}`);
        if (one === undefined) throw new OptionsError(`${path}.${name}`, each, item.kind);
        return [name, one];
      });
      return Object.fromEntries(read);
    },
  };
}

/** Makes a field required. */
export function needed<In, Out>(field: Field<In, Out>): Field<In, Out> {
  return {
    ...field,
    default: missing as In,
    read: (value, path) => (value === missing ? undefined : field.read(value, path)),
  };
}

/** Marks a required field that is missing. It is an object, because any text could be a real value. */
const missing: unknown = { toJSON: () => 'nothing' };

export function isNeeded(field: Field): boolean {
  return field.default === missing;
}

/** Parses a document with a table of fields. Defaults are filled in; durations become ms. Throws a `ConfigError`. */
export function parseTable<T extends Table>(table: T, text: string, file?: string): SettingsOf<T> {
  const source = readDocument(text, file);
  return checked(source, () => readTable(table, mapAt(source)));
}

/** The data of a document, which must be a map. Throws a `ConfigError` otherwise. */
export function mapAt({ data, file, problemAt }: SourceDocument): Record<string, unknown> {
  if (typeof data === 'object' && data !== null && !Array.isArray(data))
    return data as Record<string, unknown>;
  throw new ConfigError(file, [problemAt('', 'a document is a map of fields')]);
}

/** Calls `read`. If it throws an `OptionsError`, throws a `ConfigError` with line and column instead. */
export function checked<R>(source: SourceDocument, read: () => R): R {
  try {
    return read();
  } catch (error) {
    throw new ConfigError(source.file, [problemOf(source, error)]);
  }
}

/**
 * Turns an `OptionsError` into a problem with line and column; throws any other error again. `prefix` is put before the
 * path.
 */
export function problemOf(source: SourceDocument, error: unknown, prefix = ''): Problem {
  if (!(error instanceof OptionsError)) throw error;
  const path = prefix === '' ? error.path : `${prefix}.${error.path}`;
  return source.problemAt(path, path + error.message.slice(error.path.length));
}
