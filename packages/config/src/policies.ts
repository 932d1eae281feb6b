import { OptionsError, type PolicySpec, policy } from 'holdfast';
import { atPath, isDocument, type Table, text, unknownField } from 'holdfast/fields';
import { jsonSchema } from 'holdfast/schema';
import { ConfigError, type Problem } from './config-error.ts';
import { readDocument, type SourceDocument } from './document.ts';
import { mistakesIn } from './mistakes.ts';
import { conflictsIn } from './policy-conflicts.ts';
import { mapAt, problemsOf } from './table.ts';
import type { Schema } from './table-schema.ts';

const single = 'default';

/** All fields of a policy document. */
export const policyTable: Table = {
  name: text(),
  ...Object.assign({}, ...policy().parts.map(({ fields }) => fields)),
};

/**
 * Reads and validates the policies of a document, and returns them by name. The key of a policy under
 * `policies:` is its name. A document without `policies:` is one policy, named by its field `name`, or
 * `default`.
 */
export function parsePolicies(text: string, file?: string): ReadonlyMap<string, PolicySpec> {
  const source = readDocument(text, file);
  const document = mapAt(source);
  const specs = specsIn(document);
  const problems = [
    ...problemsOf(source, mistakesOfPolicies(specs, document)),
    ...misplaced(source, document),
  ];
  if (problems.length > 0) throw new ConfigError(source.file, problems);
  return new Map(
    specs.map(({ name, path, spec }) => [name, { ...(path !== '' && { name }), ...(spec as PolicySpec) }]),
  );
}

interface NamedSpec {
  readonly name: string;
  /** The path of the policy in the document; empty if the policy is the whole document. */
  readonly path: string;
  readonly spec: unknown;
}

function specsIn(document: Readonly<Record<string, unknown>>): NamedSpec[] {
  const { policies, name } = document;
  if (isDocument(policies)) {
    return Object.entries(policies).map(([key, spec]) => ({ name: key, path: `policies.${key}`, spec }));
  }
  if (Object.hasOwn(document, 'policies')) return [];
  return [{ name: typeof name === 'string' && name !== '' ? name : single, path: '', spec: document }];
}

function* mistakesOfPolicies(specs: readonly NamedSpec[], document: object): Generator<OptionsError> {
  for (const { path, spec } of specs) {
    // If the document only lacks the line `policies:`, the function `misplaced` reports that. Other messages
    // would be confusing.
    const mistakes = path === '' && wantsPolicies(document) ? [] : mistakesOfPolicy(spec, path);
    yield* mistakes;
  }
}

/** Returns all mistakes of one policy: first those of single fields, then conflicts between valid fields. */
export function* mistakesOfPolicy(spec: unknown, path: string): Generator<OptionsError> {
  const input = spec ?? {};
  if (!isDocument(input)) {
    yield new OptionsError(path, input, 'a policy');
    return;
  }
  const wrong: string[] = [];
  for (const mistake of mistakesIn(policyTable, input)) {
    wrong.push(mistake.path);
    yield movedTo(path, mistake);
  }
  for (const conflict of conflictsIn(input, wrong)) yield movedTo(path, conflict);
}

function movedTo(path: string, mistake: OptionsError): OptionsError {
  if (path === '') return mistake;
  const { value, expected, meant, isUnknown } = mistake;
  return new OptionsError(`${path}.${mistake.path}`, value, expected, meant, isUnknown);
}

/**
 * Returns problems at the top of a document: `policies:` is missing, is not a map, or has other fields beside
 * it.
 */
function misplaced(source: SourceDocument, document: Readonly<Record<string, unknown>>): Problem[] {
  const { policies } = document;
  if (!Object.hasOwn(document, 'policies')) {
    const instead = wantsPolicies(document);
    if (instead === undefined) return [];
    const [path, message] = instead;
    return [source.problemAt(path, message)];
  }
  const beside = Object.keys(document)
    .filter((key) => key !== 'policies')
    .map((key) => source.problemAt(key, 'stands beside policies: put it inside one'));
  if (isDocument(policies)) {
    if (Object.keys(policies).length > 0) return beside;
    return [...beside, source.problemAt('policies', 'expected at least one policy, got none')];
  }
  return [...beside, source.problemAt('policies', 'expected a map of names to policies')];
}

/**
 * Checks whether the line `policies:` was forgotten: a top-level field is unknown, but looks like a policy.
 * If so, returns the path of that field and an error message.
 */
function wantsPolicies(document: object): readonly [path: string, message: string] | undefined {
  for (const [key, value] of Object.entries(document)) {
    if (Object.hasOwn(policyTable, key) || !isDocument(value)) continue;
    const { meant } = unknownField({ policies: true }, key, value);
    if (meant !== undefined || /^polic(y|ies)$/i.test(key)) return [key, 'did you mean `policies:`?'];
    const known = Object.keys(value).filter((name) => Object.hasOwn(policyTable, name));
    if (known.length > 0)
      return [key, `did you mean \`policies:\` with ${key} below it? ${known[0]} is a field of a policy`];
  }
  return undefined;
}

/** Validates the options of one policy. A missing value means the default policy. */
export function readPolicySpec(spec: unknown, path: string): PolicySpec {
  const input = spec ?? {};
  if (!isDocument(input)) throw new OptionsError(path, input, 'a policy');
  // Leave out the name, because a policy with a name would be registered in the process.
  const { name: _, ...fields } = input as PolicySpec;
  if (path === '') policy(fields);
  else atPath(path, () => policy(fields));
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
