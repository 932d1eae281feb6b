const waiting: (() => void)[] = [];
let wake: () => void;

/**
 * Runs `fn` one microtask later in the async context in which this module was loaded, so not in the context of any
 * caller.
 */
export function runWithoutContext(fn: () => void): void {
  waiting.push(fn);
  wake();
}

/**
 * Keeps the async context of the module: a promise reaction runs in the context in which it was added, and this
 * reaction adds the next one.
 */
function awaitNext(): void {
  new Promise<void>((resolve) => {
    wake = resolve;
  }).then(() => {
    awaitNext();
    for (const each of waiting.splice(0)) each();
  });
}

awaitNext();
