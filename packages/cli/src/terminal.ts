import os from 'node:os';

/** All that a command may touch of the world. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Somebody looks at it: lines may be drawn over, and times said in words. */
  readonly isInteractive: boolean;
  /** Who acts, for the audit log. */
  readonly user: string;
  out(line: string): void;
  err(line: string): void;
  /** Draws over the last line that was drawn. */
  draw(line: string): void;
  /** Aborts when the process is asked to end. */
  readonly signal: AbortSignal;
}

export function processTerminal(): Terminal {
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

/** What strangers wrote into an event must not move a terminal's cursor, or do worse: it is shown and not obeyed. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (each) => {
    return `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** As much of a line as one row of a terminal has room for: of a second row the first would stay when it is drawn over. */
export function drawable(line: string, columns: number | undefined): string {
  const room = (columns || 80) - 1; // some terminals do not say, or say 0
  return line.length <= room ? line : `${line.slice(0, Math.max(0, room - 1))}…`;
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return 'somebody'; // a container may run under a number that has no name
  }
}
