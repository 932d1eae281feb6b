/** Calls a function of the user. If it throws, returns `otherwise` and rethrows the error as an uncaught exception. */
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
