let waiting: (() => void)[] = [];

/**
 * Calls `fn` when all promise callbacks that are ready have run. By then the program has reacted to every
 * step result that it was given. Functions that are passed in the same turn of the event loop are called
 * together.
 */
export function afterMicrotasks(fn: () => void): void {
  // Node runs the `nextTick` queue when the microtask queue is empty. So a tick that is requested in a
  // microtask runs after all other microtasks.
  if (waiting.push(fn) === 1) queueMicrotask(() => process.nextTick(callAll));
}

function callAll(): void {
  const calls = waiting;
  waiting = [];
  for (const call of calls) call();
}
