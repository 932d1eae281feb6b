import type { SQLInputValue } from 'node:sqlite';
import { filterProperties, type ParkedFilter, type ParkedProperties, valuesOf } from '@holdfast/contracts';

export interface Sql {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

const isAscii = /^\p{ASCII}*$/u;

/** Returns the conditions of a filter. Status and times are left out, because indexes answer them. */
export function conditionsOf(filter: ParkedFilter): Sql {
  const { isFree, text, not = {} } = filter;
  return all([
    ...propertiesOf(filter),
    ...propertiesOf(not).map(({ sql, values }) => ({ sql: `NOT coalesce(${sql}, false)`, values })),
    ...equal('operation', filter.operation),
    ...equal('replayed_by', filter.replayedBy),
    ...(isFree ? [{ sql: 'operation IS NULL', values: [] }] : []),
    ...(text === undefined ? [] : [containing(text.toLowerCase())]),
  ]);
}

/**
 * Returns the condition that the column has one of these values. The list is passed as JSON, so that the text
 * of the statement does not depend on its length.
 */
export function oneOf(column: string, wanted: readonly string[]): Sql {
  return { sql: `${column} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(wanted)] };
}

export function all(conditions: readonly Sql[]): Sql {
  return {
    sql: ['true', ...conditions.map(({ sql }) => sql)].join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  };
}

function propertiesOf(properties: ParkedProperties): Sql[] {
  const named = filterProperties
    .filter((name) => properties[name] !== undefined)
    .map((name) => oneOf(name, valuesOf(properties[name]!)));
  const headers = Object.entries(properties.headers ?? {}).map(([name, wanted]): Sql => {
    const { sql, values } = oneOf(headerSql, valuesOf(wanted));
    return { sql, values: [name, ...values] };
  });
  return [...named, ...headers];
}

/** SQL for the value of a header. The operator `->>` would read some header names as paths. */
export const headerSql = '(SELECT value FROM json_each(headers) WHERE key = ?)';

function equal(column: string, value: string | undefined): Sql[] {
  return value === undefined ? [] : [{ sql: `${column} = ?`, values: [value] }];
}

function containing(text: string): Sql {
  const lower = isAscii.test(text) ? 'lower' : 'holdfast_lower';
  const places = [
    'message',
    `coalesce(key, '')`,
    `CASE typeof(payload) WHEN 'text' THEN payload ELSE '' END`,
  ];
  return {
    sql: `(${places.map((place) => `instr(${lower}(${place}), ?)`).join(' OR ')})`,
    values: places.map(() => text),
  };
}
