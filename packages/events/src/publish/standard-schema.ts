import { OptionsError } from 'holdfast';
import { PoisonError } from '../consumer/event-errors.ts';

/**
 * The part of the interface https://standardschema.dev that this library uses. zod, valibot and arktype
 * implement it.
 */
export interface StandardSchema<Output = unknown, Input = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

const issuesMax = 20;

/** Throws if `schema` is not a Standard Schema. Without this check, a wrong option would park every event. */
export function assertSchema<T>(schema: StandardSchema<T> | undefined): StandardSchema<T> | undefined {
  const standard: Partial<StandardSchema['~standard']> | undefined = schema?.['~standard'];
  if (schema === undefined || typeof standard?.validate === 'function') return schema;
  throw new OptionsError('schema', schema, 'a schema of https://standardschema.dev');
}

/**
 * Validates `value` and returns it as transformed by the schema. Throws a `PoisonError` if the value is
 * invalid.
 */
export function validated<T>(schema: StandardSchema<T>, value: unknown): T | Promise<T> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then(outputOf) : outputOf(result);
}

function outputOf<T>(result: SchemaResult<T>): T {
  if (!result.issues) return result.value;
  throw new PoisonError(result.issues.slice(0, issuesMax).map(issueText));
}

function issueText({ message, path = [] }: SchemaIssue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
