import os from 'node:os';

/** All that a command may touch of the world. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Somebody looks at it: lines may be drawn over, and times said in words. */
  readonly isTerminal: boolean;
  /** Who acts, for the audit log. */
  readonly user: string;
  out(line: string): void;
  err(line: string): void;
  /** Draws over the last line that was drawn. */
  draw(line: string): void;
  /** Aborts when the process is asked to end. */
  readonly signal: AbortSignal;
}

export function processShell(): Shell {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ending.abort(new Error(`ended by ${signal}`)));
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader such as `head` that has seen enough is no error.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`holdfast: the answer cannot be printed: ${error.message}.\n`);
    process.exit(3);
  });
  // Nobody is left to complain to.
  process.stderr.on('error', () => {});
  return {
    env: process.env,
    isTerminal: process.stdout.isTTY === true,
    user: userName(),
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    draw: (line) => void process.stdout.write(`\r\x1b[2K${line}`),
    signal: ending.signal,
  };
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return 'somebody'; // a container may run under a number that has no name
  }
}
