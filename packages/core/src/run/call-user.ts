/** What a function of the user's says. One that throws has said `otherwise`, and its error surfaces on its own. */
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
