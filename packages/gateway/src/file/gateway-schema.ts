import { type Schema, schemaOf } from '@holdfast/config';
import type { Field } from 'holdfast/fields';
import { jsonSchema } from 'holdfast/schema';
import { policyField } from './field-kinds.ts';
import { gatewayFields, serviceFields } from './gateway-file.ts';

/** The JSON Schema of gateway files, and of services in the form of Kubernetes, for editors. */
export function gatewaySchema(): Schema {
  const { $schema, ...policy } = jsonSchema();
  const special = ({ kind }: Field): Schema | undefined => {
    if (kind === policyField.kind)
      return { anyOf: [{ type: 'string' }, { type: 'boolean' }, { $ref: '#/$defs/policy' }] };
    if (kind.startsWith('a size')) return sizeSchema;
    if (kind.startsWith('a port, or an address')) return { type: ['integer', 'string'] };
    if (kind.startsWith('true, false or')) return undefined;
    return undefined;
  };
  const { $schema: _, title: __, ...gateway } = schemaOf(gatewayFields, 'Holdfast gateway', special);
  const { $schema: ___, title: ____, ...service } = schemaOf(serviceFields, 'Holdfast service', special);
  return {
    $schema,
    title: 'Holdfast gateway',
    anyOf: [withVariables(gateway), withVariables(service)],
    $defs: { policy },
  } as Schema;
}

const sizeSchema = {
  anyOf: [
    { type: 'integer', minimum: 0 },
    { type: 'string', pattern: '^(\\d+(\\.\\d+)?(B|KiB|MiB|GiB)|unlimited)$' },
  ],
};

const variable = { type: 'string', pattern: '^.*\\$\\{.+\\}.*$' };

/** Each number, word and duration can also be an environment variable, and each block can be a boolean. */
function withVariables(schema: Schema): Schema {
  if (Array.isArray(schema)) return schema.map((each) => withVariables(each)) as never;
  if (typeof schema !== 'object' || schema === null) return schema;
  const mapped: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'default' || key === 'enum' || key === '$ref') mapped[key] = value;
    else if (key === 'properties')
      mapped[key] = Object.fromEntries(
        Object.entries(value as Record<string, Schema>).map(([name, each]) => [name, orVariable(each)]),
      );
    else mapped[key] = withVariables(value as Schema);
  }
  return mapped;
}

function orVariable(schema: Schema): Schema {
  const inner = withVariables(schema);
  const isBlock = inner.type === 'object' && 'enabled' in ((inner.properties as object | undefined) ?? {});
  if (isBlock) return { anyOf: [inner, { type: 'boolean' }] };
  const { type } = inner;
  const isPlain =
    type === 'integer' || type === 'number' || type === 'boolean' || 'pattern' in inner || 'enum' in inner;
  if (!isPlain) return inner;
  const { default: given, ...rest } = inner;
  return { anyOf: [rest, variable], ...(given !== undefined && { default: given }) };
}
