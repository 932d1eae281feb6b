let waiting: (() => void)[] = [];

/**
 * Calls `fn` when no promise continuation is left to run. A program that waits only for steps has then done all that it can
 * do with the results that it was given. Many calls share one turn.
 */
export function afterMicrotasks(fn: () => void): void {
  // Node runs its tick queue when the microtask queue is empty, so that a tick requested in a microtask runs after all others.
  if (waiting.push(fn) === 1) queueMicrotask(() => process.nextTick(callAll));
}

function callAll(): void {
  const calls = waiting;
  waiting = [];
  for (const call of calls) call();
}
