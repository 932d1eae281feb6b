import { clampMs, type ParkedFilter, type ParkedStatus } from '@holdfast/contracts';

/** An SQL condition, and the values of its parameters `$1`, `$2` and so on. */
export interface ParkedQuery {
  readonly where: string;
  readonly values: readonly unknown[];
  /** The number of the next free parameter. */
  readonly next: number;
}

const statuses: ReadonlySet<string> = new Set<ParkedStatus>(['parked', 'replaying', 'resolved', 'discarded']);
const plain = ['topic', 'type', 'key', 'tenant', 'operation', 'reason', 'stop', 'fingerprint'] as const;

/** Converts a filter to SQL. It must select the same events as the function `matches` of `@holdfast/contracts`. */
export function parkedQuery(filter: ParkedFilter): ParkedQuery {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const add = (condition: string, value: unknown) => {
    values.push(value);
    conditions.push(condition.replaceAll('?', `$${values.length}`));
  };
  const { ids, from, to, text, status = 'parked' } = filter;
  // The status is a literal and not a parameter, because the planner needs it to choose a partial index.
  conditions.push(statuses.has(status) ? `status = '${status}'` : 'false');
  for (const name of plain) if (filter[name] !== undefined) add(`${name} = ?`, filter[name]);
  if (filter.isFree) conditions.push('operation IS NULL');
  if (ids) add('id = ANY (?)', ids);
  if (from !== undefined) add('parked_at >= ?', Math.ceil(clampMs(from)));
  if (to !== undefined) add('parked_at < ?', Math.ceil(clampMs(to)));
  if (text !== undefined) {
    const [operator, pattern] = containing(text);
    add(`(message ${operator} ? OR key ${operator} ? OR body ${operator} ?)`, pattern);
  }
  return { where: conditions.join(' AND '), values, next: values.length + 1 };
}

/**
 * Returns an operator and a pattern for a case-insensitive search. The case of ASCII letters does not depend on the
 * locale of the database. The case of other letters does, so the pattern lists both cases of each letter.
 */
function containing(text: string): [operator: string, pattern: string] {
  if (!/[^\0-\x7f]/.test(text)) return ['ILIKE', `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`];
  return ['~', Array.from(text.toLowerCase(), eitherCase).join('')];
}

function eitherCase(small: string): string {
  const large = small.toUpperCase();
  return large.toLowerCase() === small && large !== small ? `(?:${small}|${large})` : literally(small);
}

/** Escapes a character, so that it has no special meaning in the pattern. */
function literally(sign: string): string {
  return `\\U${sign.codePointAt(0)!.toString(16).padStart(8, '0')}`;
}
