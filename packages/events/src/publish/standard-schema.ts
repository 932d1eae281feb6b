import { OptionsError } from 'holdfast';
import { PoisonError } from '../consumer/event-errors.ts';

/** What zod, valibot, arktype and others have in common: https://standardschema.dev, the part that is used here. */
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

/** Issues that are told; a long list that is wrong throughout says nothing more after these. */
const issuesMax = 20;

/** What is no schema would park every event. */
export function assertSchema<T>(schema: StandardSchema<T> | undefined): StandardSchema<T> | undefined {
  const standard: Partial<StandardSchema['~standard']> | undefined = schema?.['~standard'];
  if (schema === undefined || typeof standard?.validate === 'function') return schema;
  throw new OptionsError('schema', schema, 'a schema of https://standardschema.dev');
}

/** The value as the schema makes it; throws a `PoisonError`. A promise only where the schema needs one. */
export function validated<T>(schema: StandardSchema<T>, value: unknown): T | Promise<T> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then(outputOf) : outputOf(result);
}

function outputOf<T>(result: SchemaResult<T>): T {
  if (!result.issues) return result.value;
  throw new PoisonError(result.issues.slice(0, issuesMax).map(said));
}

function said({ message, path = [] }: SchemaIssue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
