let waiting: (() => void)[] = [];

/**
 * Calls `fn` after all promise callbacks that are ready have run. At that time, the program of the assembly
 * has reacted to the step results that it was given.
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
