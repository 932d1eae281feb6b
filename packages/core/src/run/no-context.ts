const waiting: (() => void)[] = [];
let wake: () => void;

/** Runs `fn` a moment later in nobody's async context: that in which this module was loaded. */
export function outside(fn: () => void): void {
  waiting.push(fn);
  wake();
}

/** A promise's reactions run in the context in which they were asked for: here each one asks for the next. */
function standOutside(): void {
  new Promise<void>((resolve) => {
    wake = resolve;
  }).then(() => {
    standOutside();
    for (const each of waiting.splice(0)) each();
  });
}

standOutside();
