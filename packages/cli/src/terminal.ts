import os from 'node:os';

/** Everything outside the command that it reads or writes. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A person reads it: lines may be overwritten. */
  readonly isInteractive: boolean;
  /** The user, for the audit log. */
  readonly user: string;
  out(line: string): void;
  err(line: string): void;
  /** Overwrites the last drawn line. */
  draw(line: string): void;
  /** Aborts on SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
}

export function processTerminal(): Terminal {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ending.abort(new Error(`ended by ${signal}`)));
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader such as `head` may close the pipe early: that is not an error.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`holdfast: the answer cannot be printed: ${error.message}.\n`);
    process.exit(3);
  });
  // An error of standard error cannot be reported anywhere.
  process.stderr.on('error', () => {});
  const isInteractive = process.stdout.isTTY === true;
  return {
    env: process.env,
    isInteractive,
    user: userName(),
    out: (line) => void process.stdout.write(`${isInteractive ? printable(line) : line}\n`),
    err: (line) => void process.stderr.write(`${process.stderr.isTTY ? printable(line) : line}\n`),
    draw: (line) => void process.stdout.write(`\r\x1b[2K${drawable(line, process.stdout.columns)}`),
    signal: ending.signal,
  };
}

/** Events may contain control characters that move the cursor or do worse: they are printed as escapes. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (each) => {
    return `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** The part of a line that fits into one row: only one row can be overwritten. */
export function drawable(line: string, columns: number | undefined): string {
  const room = (columns || 80) - 1; // some terminals have no width, or 0
  return line.length <= room ? line : `${line.slice(0, Math.max(0, room - 1))}…`;
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return 'somebody'; // a container may run under a user id without a name
  }
}
