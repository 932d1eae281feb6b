const waiting: (() => void)[] = [];
let wake: () => void;

/** Runs `fn` one microtask later in the async context in which this module was loaded, which belongs to no caller. */
export function runWithoutContext(fn: () => void): void {
  waiting.push(fn);
  wake();
}

/** The reactions of a promise run in the context in which they were added: here each reaction adds the next. */
function awaitNext(): void {
  new Promise<void>((resolve) => {
    wake = resolve;
  }).then(() => {
    awaitNext();
    for (const each of waiting.splice(0)) each();
  });
}

awaitNext();
