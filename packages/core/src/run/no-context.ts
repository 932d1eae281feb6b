const waiting: (() => void)[] = [];
let wake: () => void;

/**
 * Runs `fn` one microtask later, in the async context in which this module was loaded. So `fn` does not run
 * in the context of any caller.
 */
export function runWithoutContext(fn: () => void): void {
  waiting.push(fn);
  wake();
}

/**
 * Waits for the next call of `wake`. Each callback then waits for the call after that. So all callbacks run
 * in the async context in which this module was loaded.
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
