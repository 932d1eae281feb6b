import type { Field, Table } from '../fields.ts';

/** A field with the value that it has. */
export interface Setting {
  /** As in the document: `backoff.base`. */
  readonly path: string;
  /** As a document would say it: `200ms`, `full`, `off`. */
  readonly value: string;
  /** The document says nothing of it. */
  readonly isDefault: boolean;
}

/** The value of a field that has no default. */
export const notSaid = 'not said';

/** Every field of `fields` with its value, groups that are on opened up. */
export function saidSettings(fields: Table, spec: object): Setting[] {
  return settingsIn(fields, spec, '', false);
}

function settingsIn(fields: Table, spec: object, prefix: string, allDefault: boolean): Setting[] {
  return Object.entries(fields).flatMap(([key, field]) => {
    const said: unknown = (spec as Record<string, unknown>)[key] ?? undefined;
    return settingsOf(field, said ?? field.default, prefix + key, allDefault || said === undefined);
  });
}

function settingsOf(field: Field, value: unknown, path: string, isDefault: boolean): Setting[] {
  const { fields, of, kind } = field;
  if (of && !kind.startsWith('a list')) return settingsOf(recognising(of, value), value, path, isDefault);
  if (fields && value && value !== true) return settingsIn(fields, value, `${path}.`, isDefault);
  if (fields && value) return settingsIn(fields, {}, `${path}.`, true);
  return [{ path, value: fields ? 'off' : say(value), isDefault }];
}

/** The alternative that takes the value. One that complains about something inside it has recognised it. */
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

function say(value: unknown): string {
  if (value === undefined) return notSaid;
  if (typeof value === 'function') return value.name || 'a function';
  if (Array.isArray(value)) return value.length > 0 ? value.map(say).join(', ') : 'none';
  if (typeof value !== 'object' || value === null) return String(value);
  return 'pack' in value ? String(value.pack) : 'given';
}
