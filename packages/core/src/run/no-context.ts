const waiting: (() => void)[] = [];
let wake: () => void;

/** Runs `fn` one microtask later, in the async context in which this module was loaded. */
export function runWithoutContext(fn: () => void): void {
  waiting.push(fn);
  wake();
}

/**
 * A promise reaction runs in the async context in which it was added. Each reaction adds the next, so the context of
 * the module is kept.
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
