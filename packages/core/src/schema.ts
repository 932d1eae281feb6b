import type { Pack } from './decide/outcome.ts';
import type { Field, Table } from './fields.ts';
import { policy } from './policy/all-parts.ts';
import { fieldNotes } from './policy/field-notes.ts';
import type { Part } from './policy/part.ts';

/** A JSON Schema, with only the keywords of version 2020-12 that this package uses. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: false;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
}

/**
 * Returns the JSON Schema of the documents that a policy with the parts `chosen` accepts. Default: all parts.
 *
 * A JSON Schema cannot describe functions, nor rules that compare two fields. Only `policy()` checks these.
 */
export function jsonSchema(chosen?: readonly (Part | Pack)[]): JsonSchema {
  const from = chosen ?? wholePolicy();
  const packs = from.filter((each): each is Pack => 'pack' in each).map(({ pack }) => pack);
  const fields: Table = Object.assign({}, ...from.map((each) => ('fields' in each ? each.fields : {})));
  const { properties, ...rest } = objectOf(fields, '', packs);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Holdfast policy',
    description: 'How work is retried and protected.',
    type: 'object',
    properties: { name: { description: fieldNotes.name!, type: 'string', minLength: 1 }, ...properties },
    ...rest,
  };
}

function wholePolicy(): readonly (Part | Pack)[] {
  const { parts, plan } = policy();
  return [...parts, ...plan.packs];
}

function objectOf(fields: Table, prefix: string, packs: readonly string[]): JsonSchema {
  const properties = Object.entries(fields).map(([key, field]) => {
    const path = prefix + key;
    const description = fieldNotes[path];
    return [
      key,
      {
        ...(description !== undefined && { description }),
        ...oneOf(alternatives(field, path, packs)),
        ...(field.default !== undefined && { default: field.default }),
      },
    ];
  });
  return { properties: Object.fromEntries(properties), additionalProperties: false };
}

function alternatives(field: Field, path: string, packs: readonly string[]): JsonSchema[] {
  const { kind, fields, of, words } = field;
  if (fields) {
    // A field that reads `false` as null is a group, and can be switched off with `false`.
    const type = field.read(false, path) === null ? ['object', 'boolean'] : 'object';
    return [{ type, ...objectOf(fields, `${path}.`, packs) }];
  }
  if (of && kind.startsWith('a list')) {
    // JSON cannot contain functions, so these two lists can only contain names of packs (named classifiers).
    const item =
      path === 'retryOn' || path === 'retryOnly'
        ? [{ enum: packs }]
        : alternatives(of[0] as Field, path, packs);
    return [...item, { type: 'array', items: oneOf(item) }];
  }
  if (of) return of.flatMap((each) => alternatives(each, path, packs));
  const instead = words ? [{ enum: Object.keys(words) }] : [];
  return [...plain(field), ...instead];
}

function plain({ kind, min, max }: Field): JsonSchema[] {
  const range = { ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
  if (kind === 'a number') return [{ type: 'number', ...range }];
  if (kind === 'a whole number') return [{ type: 'integer', ...range }];
  if (kind.startsWith('a duration')) {
    return [{ type: ['number', 'string'], ...range, pattern: min ? positiveDuration : anyDuration }];
  }
  if (kind.startsWith('a rate')) return [{ type: 'string', pattern: aRate }];
  return kind === 'anything' ? [{}] : [];
}

const anyDuration = '^\\d+(\\.\\d+)?(ms|s|m|h|d)$';
/**
 * A regular expression for a duration above 0. It has no look-ahead, because some validators do not support look-ahead.
 */
const positiveDuration = '^(\\d*[1-9]\\d*(\\.\\d+)?(ms|s|m|h|d)|0+\\.\\d*[1-9]\\d*(s|m|h|d))$';
const aRate = '^(\\d*[1-9]\\d*(\\.\\d+)?|0+\\.\\d*[1-9]\\d*)/(s|m|h)$';

function oneOf(schemas: readonly JsonSchema[]): JsonSchema {
  if (schemas.length === 0) return { not: {} };
  return schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas };
}
