import { OptionsError, type PolicySpec, policy } from 'holdfast';
import { jsonSchema } from 'holdfast/schema';
import { ConfigError, type Problem } from './config-error.ts';
import { readDocument } from './document.ts';
import { mapAt, problemOf } from './table.ts';
import type { Schema } from './table-schema.ts';

const single = 'default';

/**
 * Reads the policies of a document by name, and checks each with `policy`. A document with `policies:` contains many
 * policies. Any other document is one policy, and its name is the field `name`, or `default` without this field. Throws
 * a `ConfigError` with a problem for each invalid policy.
 */
export function parsePolicies(text: string, file?: string): ReadonlyMap<string, PolicySpec> {
  const source = readDocument(text, file);
  const document = mapAt(source);
  const problems: Problem[] = [];
  const found = new Map<string, PolicySpec>();
  const take = (name: string, spec: unknown, path: string) => {
    try {
      found.set(name, readPolicySpec(spec, path || 'policy'));
    } catch (error) {
      problems.push(
        problemOf(source, error, error instanceof OptionsError && error.path === path ? '' : path),
      );
    }
  };
  if (!Object.hasOwn(document, 'policies')) {
    const { name } = document;
    take(typeof name === 'string' && name !== '' ? name : single, document, '');
  } else {
    const { policies } = document;
    for (const key of Object.keys(document)) {
      if (key !== 'policies')
        problems.push(source.problemAt(key, 'stands beside policies: put it inside one'));
    }
    if (typeof policies !== 'object' || policies === null || Array.isArray(policies)) {
      problems.push(source.problemAt('policies', 'expected a map of names to policies'));
    } else for (const [name, spec] of Object.entries(policies)) take(name, spec, `policies.${name}`);
  }
  if (problems.length > 0) throw new ConfigError(source.file, problems);
  return found;
}

/** Checks the options of one policy. A missing value means the default policy. Throws an `OptionsError`. */
export function readPolicySpec(spec: unknown, path: string): PolicySpec {
  const input = spec ?? {};
  if (typeof input !== 'object' || Array.isArray(input)) throw new OptionsError(path, input, 'a policy');
  const { name, ...fields } = input as PolicySpec;
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new OptionsError('name', name, 'a text');
  // The name is left out, because a policy with a name would be registered in the process.
  policy(fields);
  return input as PolicySpec;
}

/** The JSON Schema of the documents that `parsePolicies` reads. */
export function policiesSchema(): Schema {
  const { $schema, ...policy } = jsonSchema();
  const ofMany = {
    type: 'object',
    properties: { policies: { type: 'object', additionalProperties: { $ref: '#/$defs/policy' } } },
    required: ['policies'],
    additionalProperties: false,
  };
  return {
    $schema,
    title: 'Holdfast policies',
    anyOf: [ofMany, { $ref: '#/$defs/policy' }],
    $defs: { policy },
  };
}
