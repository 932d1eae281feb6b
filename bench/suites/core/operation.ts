/** The work that is measured: as little as possible, so that what is left is what a policy costs. */
export async function answer(): Promise<number> {
  return 42;
}

export type Flaky = () => Promise<number>;

/** Fails three times with a new error, succeeds on the fourth call, and begins again. */
export function flaky(): Flaky {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls % 4 !== 0) throw new Error('down');
    return 42;
  };
}

/** What a caller without a policy does. */
export async function bare(times: number): Promise<void> {
  for (let i = 0; i < times; i++) await answer();
}
