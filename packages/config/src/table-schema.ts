import type { Field, Table } from 'holdfast/fields';
import { isNeeded } from './table.ts';

/** A JSON Schema as plain data. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Returns the JSON Schema of the documents that `parseTable` reads. `special` may return another schema for a
 * field.
 */
export function schemaOf(
  table: Table,
  title: string,
  special?: (field: Field) => Schema | undefined,
): Schema {
  const objectOf = (fields: Table): Schema => {
    const required = Object.keys(fields).filter((key) => isNeeded(fields[key] as Field));
    const properties = Object.entries(fields).map(([key, field]) => {
      const hasDefault = field.default !== undefined && !isNeeded(field);
      return [key, { ...either(schemas(field)), ...(hasDefault && { default: field.default }) }];
    });
    return {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    };
  };

  const schemas = (field: Field): Schema[] => {
    const { kind, fields, of, words, min, max } = field;
    const known = special?.(field);
    if (known) return [known];
    if (fields) return [objectOf(fields)];
    if (of && kind.startsWith('a map')) {
      return [{ type: 'object', additionalProperties: either(of.flatMap(schemas)) }];
    }
    if (of && kind.startsWith('a list')) {
      const item = of.flatMap(schemas);
      return [...item, { type: 'array', items: either(item) }];
    }
    if (of) return of.flatMap(schemas);
    const range = { ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
    const instead = words ? [{ enum: Object.keys(words) }] : [];
    if (kind === 'a number') return [{ type: 'number', ...range }, ...instead];
    if (kind === 'a whole number') return [{ type: 'integer', ...range }, ...instead];
    if (kind.startsWith('a duration')) {
      return [{ type: ['number', 'string'], ...range, pattern: '^\\d+(\\.\\d+)?(ms|s|m|h|d)$' }, ...instead];
    }
    if (kind.startsWith('a rate')) return [{ type: 'string', pattern: '^\\d+(\\.\\d+)?/(s|m|h)$' }];
    if (kind === 'a text') return [{ type: 'string', minLength: 1 }];
    if (kind === 'true or false') return [{ type: 'boolean' }];
    return instead.length > 0 ? instead : [{}];
  };

  return { $schema: 'https://json-schema.org/draft/2020-12/schema', title, ...objectOf(table) };
}

function either(schemas: readonly Schema[]): Schema {
  return schemas.length === 1 ? (schemas[0] as Schema) : { anyOf: schemas };
}
