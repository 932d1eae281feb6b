import type { ParkedFilter, ParkedStatus } from '@holdfast/contracts';

/** A condition with its values, numbered from `$1` on. */
export interface ParkedQuery {
  readonly where: string;
  readonly values: readonly unknown[];
  /** The number that the next value has. */
  readonly next: number;
}

const statuses: ReadonlySet<string> = new Set<ParkedStatus>(['parked', 'replaying', 'resolved', 'discarded']);
const plain = ['topic', 'type', 'key', 'tenant', 'operation', 'reason', 'stop', 'fingerprint'] as const;

/** The meaning of a filter, as `matches` of the contracts has it. */
export function parkedQuery(filter: ParkedFilter): ParkedQuery {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const add = (condition: string, value: unknown) => {
    values.push(value);
    conditions.push(condition.replaceAll('?', `$${values.length}`));
  };
  const { ids, from, to, text, status = 'parked' } = filter;
  // As text and not as a value: partial indexes are found by it.
  conditions.push(statuses.has(status) ? `status = '${status}'` : 'false');
  for (const name of plain) if (filter[name] !== undefined) add(`${name} = ?`, filter[name]);
  if (filter.isFree) conditions.push('operation IS NULL');
  if (ids) add('id = ANY (?)', ids);
  if (from !== undefined && from > -Infinity) add('parked_at >= ?', Math.ceil(from));
  if (to !== undefined && to < Infinity) add('parked_at < ?', Math.ceil(to));
  if (text !== undefined) {
    const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
    add(`(message ILIKE ? OR key ILIKE ? OR body ILIKE ?)`, pattern);
  }
  return { where: conditions.join(' AND '), values, next: values.length + 1 };
}
