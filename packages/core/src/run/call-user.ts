/** Calls a function of the user. If it throws, returns `otherwise`, and the error surfaces as an uncaught exception. */
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
