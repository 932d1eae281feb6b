import type { Field, Table } from '../fields.ts';

/** A field of a policy document and its value. */
export interface Setting {
  /** The path of the field in the document: `backoff.base`. */
  readonly path: string;
  /** The value as it would be written in a document: `200ms`, `full`, `off`. */
  readonly value: string;
  /** True: the document does not set this field. */
  readonly isDefault: boolean;
}

/** The text for a field that has no default and is not set in the document. */
export const notSet = 'not set';

/**
 * Returns all fields with their values. A group that is switched on, such as `backoff`, is returned as its
 * single fields.
 */
export function effectiveSettings(fields: Table, spec: object): Setting[] {
  return settingsIn(fields, spec, '', false);
}

function settingsIn(fields: Table, spec: object, prefix: string, allDefault: boolean): Setting[] {
  return Object.entries(fields).flatMap(([key, field]) => {
    const value: unknown = (spec as Record<string, unknown>)[key] ?? undefined;
    return settingsOf(field, value ?? field.default, prefix + key, allDefault || value === undefined);
  });
}

function settingsOf(field: Field, value: unknown, path: string, isDefault: boolean): Setting[] {
  const { fields, of, kind } = field;
  if (of && !kind.startsWith('a list')) return settingsOf(recognising(of, value), value, path, isDefault);
  if (fields && value && value !== true) return settingsIn(fields, value, `${path}.`, isDefault);
  if (fields && value) return settingsIn(fields, {}, `${path}.`, true);
  return [{ path, value: fields ? 'off' : format(value), isDefault }];
}

/**
 * Returns the definition in `of` that fits the value. A definition also fits if its `read` throws: in this
 * case it has recognised the value, but the value contains an error.
 */
function recognising(of: readonly Field[], value: unknown): Field {
  const found = of.find((each) => {
    try {
      return each.read(value, '') !== undefined;
    } catch {
      return true;
    }
  });
  return found ?? (of[0] as Field);
}

function format(value: unknown): string {
  if (value === undefined) return notSet;
  if (typeof value === 'function') return value.name || 'a function';
  if (Array.isArray(value)) return value.length > 0 ? value.map(format).join(', ') : 'none';
  if (typeof value !== 'object' || value === null) return String(value);
  return 'pack' in value ? String(value.pack) : 'given';
}
