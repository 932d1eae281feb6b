/**
 * Calls a function that the user has provided. If it throws, returns `otherwise`, and rethrows the error in a
 * microtask as an uncaught exception.
 */
export function callUser<T>(fn: () => T, otherwise: T): T {
  try {
    return fn();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
    return otherwise;
  }
}
