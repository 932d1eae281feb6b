import os from 'node:os';

/** The environment of a command: what it reads and where it prints. Tests replace it. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether the output goes to a terminal, where lines may be overwritten. */
  readonly isInteractive: boolean;
  /** The name of the user, for the audit log. */
  readonly user: string;
  out(line: string): void;
  err(line: string): void;
  /** Prints a line in place of the line that was drawn last. */
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
    // A program that reads the output, such as `head`, may close the pipe early. That is not an error.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`holdfast: the answer cannot be printed: ${error.message}.\n`);
    process.exit(3);
  });
  // If standard error is broken, the error cannot be reported anywhere.
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

/** Escapes control characters. Events may contain them, and they could move the cursor or change the terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (each) => {
    return `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** Cuts a line to one row of the terminal, because only one row can be overwritten. */
export function drawable(line: string, columns: number | undefined): string {
  const room = (columns || 80) - 1; // some terminals report no width, or 0
  return line.length <= room ? line : `${line.slice(0, Math.max(0, room - 1))}…`;
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return 'somebody'; // the user id of a container may have no name
  }
}
