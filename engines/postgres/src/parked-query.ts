import {
  clampMs,
  filterProperties,
  type OneOf,
  type ParkedFilter,
  type ParkedProperties,
  type ParkedStatus,
  type Place,
  valuesOf,
} from '@holdfast/contracts';
import { toHeaderText } from './header-text.ts';

export class ParkedQuery {
  readonly values: unknown[] = [];
  readonly #conditions: string[] = [];
  readonly #statuses: readonly ParkedStatus[];

  constructor(statuses: OneOf<ParkedStatus>) {
    this.#statuses = [...new Set(valuesOf(statuses))].filter((status) => known.has(status));
  }

  /** Adds a condition. Each `?` stands for the value. */
  and(condition: string, value: unknown): void {
    this.#conditions.push(condition.replaceAll('?', this.parameter(value)));
  }

  andThat(condition: string): void {
    this.#conditions.push(condition);
  }

  /** Adds a value and returns its place in the text, such as `$3`. */
  parameter(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  get where(): string {
    return this.#where(this.#statuses);
  }

  /**
   * Selects the first events, sorted by `parked_at` and `id`. Each status needs its own index scan to keep
   * this order.
   */
  first(columns: string, direction: 'ASC' | 'DESC', limit: string): string {
    const order = `ORDER BY parked_at ${direction}, id ${direction}`;
    const select = (statuses: readonly ParkedStatus[]) =>
      `SELECT ${columns} FROM {schema}.parked WHERE ${this.#where(statuses)} ${order} LIMIT ${limit}`;
    if (this.#statuses.length < 2) return select(this.#statuses);
    const parts = this.#statuses.map((status) => `(${select([status])})`);
    return `SELECT * FROM (${parts.join(' UNION ALL ')}) AS p ${order} LIMIT ${limit}`;
  }

  /** The planner needs the statuses in the text to choose an index. */
  #where(statuses: readonly ParkedStatus[]): string {
    const status =
      statuses.length === 0 ? 'false' : `status IN (${statuses.map((s) => `'${s}'`).join(', ')})`;
    return [status, ...this.#conditions].join(' AND ');
  }
}

const known: ReadonlySet<string> = new Set<ParkedStatus>(['parked', 'replaying', 'resolved', 'discarded']);

/** Converts a filter to SQL. It must select the same events as `matches` of `@holdfast/contracts`. */
export function parkedQuery(filter: ParkedFilter): ParkedQuery {
  const { ids, from, to, text, status = 'parked', operation, replayedBy, not } = filter;
  const query = new ParkedQuery(status);
  addProperties(query, filter);
  if (not) addOpposites(query, not);
  if (operation !== undefined) query.and('operation = ?', operation);
  if (replayedBy !== undefined) query.and('replayed_by = ?', replayedBy);
  if (filter.isFree) query.andThat('operation IS NULL');
  if (ids) query.and('id = ANY (?)', ids);
  if (from !== undefined) query.and('parked_at >= ?', Math.ceil(clampMs(from)));
  if (to !== undefined) query.and('parked_at < ?', Math.ceil(clampMs(to)));
  if (text !== undefined) {
    const [operator, pattern] = containing(text);
    query.and(`(message ${operator} ? OR key ${operator} ? OR body ${operator} ?)`, pattern);
  }
  return query;
}

/** Like `parkedQuery`, but only with conditions for which an index returns the events already sorted. */
export function indexedQuery({ status = 'parked', topic, fingerprint }: ParkedFilter): ParkedQuery {
  const query = new ParkedQuery(status);
  if (typeof topic === 'string') query.and('topic = ?', topic);
  else if (typeof fingerprint === 'string') query.and('fingerprint = ?', fingerprint);
  return query;
}

/** Adds a condition: the event is before or after a position in the order of `parked_at` and `id`. */
export function addPlace(query: ParkedQuery, operator: '<' | '>' | '>=', [parkedAt, id]: Place): void {
  query.andThat(
    `(parked_at, id) ${operator} (${query.parameter(parkedAt)}::bigint, ${query.parameter(id)}::text)`,
  );
}

function addProperties(query: ParkedQuery, properties: ParkedProperties): void {
  for (const name of filterProperties) {
    const wanted = properties[name];
    if (typeof wanted === 'string') query.and(`${name} = ?`, wanted);
    else if (wanted !== undefined) query.and(`${name} = ANY (?)`, wanted);
  }
  for (const wanted of Object.values(properties.headers ?? {}))
    if (valuesOf(wanted).length === 0) query.andThat('false');
  const [names, values] = headerPairs(properties);
  if (names.length === 0) return;
  query.andThat(`NOT EXISTS (SELECT FROM unnest(${query.parameter(names)}::text[], ${query.parameter(values)}::text[])
    AS w(name, value) GROUP BY w.name HAVING NOT bool_or({schema}.header_of(extras, w.name) IS NOT DISTINCT FROM w.value))`);
}

function addOpposites(query: ParkedQuery, not: ParkedProperties): void {
  for (const name of filterProperties)
    if (not[name] !== undefined) query.and(`(${name} IS NULL OR ${name} <> ALL (?))`, valuesOf(not[name]));
  const [names, values] = headerPairs(not);
  if (names.length === 0) return;
  query.andThat(`NOT EXISTS (SELECT FROM unnest(${query.parameter(names)}::text[], ${query.parameter(values)}::text[])
    AS w(name, value) WHERE {schema}.header_of(extras, w.name) = w.value)`);
}

/** Returns header names and values as two lists, so that the SQL text does not depend on their number. */
function headerPairs({ headers = {} }: ParkedProperties): [names: string[], values: string[]] {
  const pairs = Object.entries(headers).flatMap(([name, wanted]) =>
    valuesOf(wanted).map((value) => [toHeaderText(name), toHeaderText(value)] as const),
  );
  return [pairs.map(([name]) => name), pairs.map(([, value]) => value)];
}

/**
 * Returns a condition: the column contains `text`. `ILIKE` depends on the locale outside ASCII, so the
 * pattern lists both cases of each letter.
 */
function containing(text: string): [operator: string, pattern: string] {
  if (!/[^\0-\x7f]/.test(text)) return ['ILIKE', `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`];
  return ['~', Array.from(text.toLowerCase(), eitherCase).join('')];
}

function eitherCase(small: string): string {
  const large = small.toUpperCase();
  return large.toLowerCase() === small && large !== small ? `(?:${small}|${large})` : literally(small);
}

function literally(sign: string): string {
  return `\\U${sign.codePointAt(0)!.toString(16).padStart(8, '0')}`;
}
