import type { SourceDocument } from '@holdfast/config';
import { durationMs } from 'holdfast';
import { type Field, isDocument, type Table } from 'holdfast/fields';
import { policyField } from './field-kinds.ts';
import type { BareDuration } from './gateway-config.ts';

/** A number from here on is hardly a number of seconds. */
const secondsMax = 100;

/**
 * Finds durations that are written as a small number without a unit. Policies are left out: their waits are
 * often a few milliseconds.
 */
export function bareDurationsIn(table: Table, data: object, source: SourceDocument): BareDuration[] {
  return [...inTable(table, data, '')].map(({ path, ms }) => {
    const { line, column } = source.problemAt(path, '');
    return { place: `${source.file}:${line}:${column}`, path, ms };
  });
}

type Found = Pick<BareDuration, 'path' | 'ms'>;

function* inTable(table: Table, data: object, prefix: string): Generator<Found> {
  for (const [key, value] of Object.entries(data)) {
    const field = Object.hasOwn(table, key) ? table[key] : undefined;
    if (field) yield* inField(field, value, prefix + key);
  }
}

function* inField(field: Field, value: unknown, path: string): Generator<Found> {
  const { kind, of = [] } = field;
  const [item] = of;
  if (kind === policyField.kind) return;
  if (typeof value === 'number') {
    if (isDuration(field) && value > 0 && value < secondsMax && !isShort(field)) yield { path, ms: value };
  } else if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) if (item) yield* inField(item, each, `${path}[${index}]`);
  } else if (isDocument(value)) {
    const group = [field, ...of].find(({ fields }) => fields);
    if (item && kind.startsWith('a map'))
      for (const [name, each] of Object.entries(value)) yield* inField(item, each, `${path}.${name}`);
    else if (group?.fields) yield* inTable(group.fields, value, `${path}.`);
  }
}

function isDuration({ kind }: Field): boolean {
  return kind.startsWith('a duration');
}

/** True: the default is below a second, so a few milliseconds are usual, as in the queue of `shedding`. */
function isShort({ default: usual }: Field): boolean {
  if (typeof usual !== 'string' || !/^\d/.test(usual)) return false;
  const ms = durationMs(usual);
  return ms > 0 && ms < 1000;
}
