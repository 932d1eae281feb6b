import { HoldfastError } from 'holdfast';

/** Thrown when an engine does not behave as the contract says. */
export class ConformanceError extends HoldfastError {
  constructor(message: string) {
    super('HOLDFAST_CONFORMANCE', message);
  }
}

export function ensure(condition: unknown, what: string): asserts condition {
  if (!condition) throw new ConformanceError(what);
}

/** Throws if `actual` differs from `expected`. Fields that `expected` does not have are ignored. */
export function expectLike(actual: unknown, expected: unknown, what: string): void {
  ensure(isLike(actual, expected), `${what}: expected ${show(expected)}, got ${show(actual)}`);
}

export async function expectRejection(promise: Promise<unknown>, code: string, what: string): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const got = (error as { code?: unknown } | undefined)?.code;
  ensure(got === code, `${what}: expected a rejection with ${code}, got ${got ?? error ?? 'an answer'}`);
}

function isLike(actual: unknown, expected: unknown): boolean {
  if (Object.is(actual, expected)) return true;
  if (typeof expected !== 'object' || expected === null || typeof actual !== 'object' || actual === null)
    return false;
  if (expected instanceof Set) {
    return (
      actual instanceof Set &&
      actual.size === expected.size &&
      [...expected].every((item) => actual.has(item))
    );
  }
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => isLike(actual[index], item))
    );
  }
  return Object.entries(expected).every(([name, value]) =>
    isLike((actual as Record<string, unknown>)[name], value),
  );
}

function show(value: unknown): string {
  return (JSON.stringify(value, plain) ?? 'undefined').slice(0, 400);
}

function plain(_: string, value: unknown): unknown {
  if (value === undefined || value === Infinity) return String(value);
  return value instanceof Set ? [...value] : value;
}
