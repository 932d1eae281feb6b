import { OptionsError } from 'holdfast';
import { CheckFailedError } from './assembly-errors.ts';

/** The part of https://standardschema.dev that is used here. zod, valibot, arktype and others implement it. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A Standard Schema, or a function that throws or returns false for a bad value. */
export type Check<T = unknown> = StandardSchema<T> | ((value: T) => unknown);

const issuesMax = 20;

export function assertCheck(path: string, check: unknown): void {
  if (check === undefined || typeof check === 'function') return;
  const standard = (check as Partial<StandardSchema> | null)?.['~standard'];
  if (typeof standard?.validate === 'function') return;
  throw new OptionsError(path, check, 'a function, or a schema of https://standardschema.dev');
}

/**
 * Checks `value`. Returns it as transformed by the schema, or unchanged if the check is a function. Returns a
 * promise only if the check is asynchronous.
 */
export function checked<T>(step: string, check: Check<T>, value: unknown): T | Promise<T> {
  if (typeof check === 'function') {
    const answer = check(value as T);
    return answer instanceof Promise
      ? answer.then((given) => passed(step, given, value as T))
      : passed(step, answer, value as T);
  }
  const result = check['~standard'].validate(value);
  return result instanceof Promise ? result.then((given) => outputOf(step, given)) : outputOf(step, result);
}

function passed<T>(step: string, answer: unknown, value: T): T {
  if (answer === false) throw new CheckFailedError(step, ['the check returned false']);
  return value;
}

function outputOf<T>(step: string, result: SchemaResult<T>): T {
  if (!result.issues) return result.value;
  throw new CheckFailedError(step, result.issues.slice(0, issuesMax).map(issueText));
}

function issueText({ message, path = [] }: SchemaIssue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
