import { OptionsError } from 'holdfast';
import {
  type Field,
  type InputOf,
  type OutputOf,
  readTable,
  type SettingsOf,
  type Table,
} from 'holdfast/fields';
import { ConfigError, type Problem, problemsMax } from './config-error.ts';
import { readDocument, type SourceDocument } from './document.ts';
import { mistakesIn } from './mistakes.ts';

/** Returns a field whose value is a map with free keys. All values of the map are of the same kind `item`. */
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

/** Returns the same field as a required field: a document without it is refused. */
export function needed<In, Out>(field: Field<In, Out>): Field<In, Out> {
  return {
    ...field,
    default: missing as In,
    read: (value, path) => (value === missing ? undefined : field.read(value, path)),
  };
}

/**
 * The default value of required fields: it means that the field is missing. It is an object, because any text
 * could be a real value.
 */
const missing: unknown = { toJSON: () => undefined, toString: () => 'nothing' };

export function isNeeded(field: Field): boolean {
  return field.default === missing;
}

/**
 * Parses a document with a table of fields. Missing fields get their defaults, and durations are converted to
 * ms. Throws a `ConfigError` for mistakes.
 */
export function parseTable<T extends Table>(table: T, text: string, file?: string): SettingsOf<T> {
  return readSource(table, readDocument(text, file));
}

function readSource<T extends Table>(table: T, source: SourceDocument): SettingsOf<T> {
  const input = mapAt(source);
  const problems = problemsOf(source, mistakesIn(table, input));
  if (problems.length > 0) throw new ConfigError(source.file, problems);
  return readTable(table, input);
}

/** Returns the data of a document. Throws a `ConfigError` if it is not a map. */
export function mapAt({ data, file, problemAt }: SourceDocument): Record<string, unknown> {
  if (typeof data === 'object' && data !== null && !Array.isArray(data))
    return data as Record<string, unknown>;
  throw new ConfigError(file, [problemAt('', 'a document is a map of fields')]);
}

/**
 * Converts mistakes to problems with line and column. Returns at most 100 of them, because a `ConfigError`
 * lists no more.
 */
export function problemsOf(source: SourceDocument, mistakes: Iterable<OptionsError>): Problem[] {
  const problems: Problem[] = [];
  for (const { path, message, expected } of mistakes) {
    const hint = expected === 'a function' ? '; a function or class can be given only in TypeScript' : '';
    problems.push(source.problemAt(path, message + hint));
    if (problems.length === problemsMax) break;
  }
  return problems;
}
