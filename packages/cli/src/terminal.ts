import os from 'node:os';
import { plain, type StyledText, styleCodes } from './styled-text.ts';
import { splitAt, widthOf, wrapText } from './text-width.ts';

/** The environment, output and signals of a command. Tests pass another implementation. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if the output goes to a terminal. There a line can be overwritten. */
  readonly isInteractive: boolean;
  /** The width of the terminal in characters. Undefined in a pipe, where lines are not wrapped. */
  readonly columns: number | undefined;
  /** How the user can start this program: `holdfast`, or `npx holdfast` if it is installed in a project. */
  readonly program: string;
  /** The name of the user, for the audit log. */
  readonly user: string;
  /** Prints one or more lines. A `StyledText` is printed with colours if the terminal has them. */
  out(line: string | StyledText): void;
  err(line: string): void;
  /** Overwrites the line that the last `draw` printed. */
  draw(line: string): void;
  /** Clears the screen. Only called if `isInteractive` is true. */
  clear(): void;
  /** Aborts on SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
}

export function processTerminal(): Terminal {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ending.abort(new Error(`ended by ${signal}`)));
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader of the output, such as `head`, may close the pipe early. That is not an error.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`holdfast: the answer cannot be printed: ${error.message}.\n`);
    process.exit(3);
  });
  // Ignore errors of standard error: there is no place to report them.
  process.stderr.on('error', () => {});
  const isInteractive = process.stdout.isTTY === true;
  const outHasColor = hasColor(process.env, isInteractive);
  const errHasColor = hasColor(process.env, process.stderr.isTTY === true);
  return {
    env: process.env,
    isInteractive,
    columns: isInteractive ? widthIn(process.stdout) : undefined,
    program: programIn(process.argv[1] ?? ''),
    user: userName(),
    out: (line) => void process.stdout.write(`${rendered(line, isInteractive, outHasColor)}\n`),
    err(line) {
      const text = process.stderr.isTTY ? wrapText(printable(line), widthIn(process.stderr), 2) : line;
      const [begin, end] = styleCodes.bad;
      // Errors begin at the start of a line and are red. Indented text is a list of commands and has no
      // colour.
      process.stderr.write(errHasColor && /^\S/.test(text) ? `${begin}${text}${end}\n` : `${text}\n`);
    },
    draw: (line) => void process.stdout.write(`\r\x1b[2K${drawable(line, process.stdout.columns)}`),
    clear: () => void process.stdout.write('\x1b[H\x1b[2J\x1b[3J'),
    signal: ending.signal,
  };
}

/** `path` is the file that Node was started with. Programs of a project are in `node_modules`. */
export function programIn(path: string): string {
  return /[/\\]node_modules[/\\]/.test(path) ? 'npx holdfast' : 'holdfast';
}

/** Some terminals report no width, or 0. */
function widthIn({ columns }: { columns?: number }): number {
  return columns || 80;
}

/** `FORCE_COLOR` has priority over `NO_COLOR`, as in Node. */
export function hasColor(env: Terminal['env'], isTerminal: boolean): boolean {
  const { FORCE_COLOR: forced = '', NO_COLOR: none = '', TERM: name } = env;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTerminal && none === '' && name !== 'dumb';
}

function rendered(line: string | StyledText, isInteractive: boolean, isColored: boolean): string {
  const shown = (text: string) => (isInteractive ? printable(text) : text);
  if (typeof line === 'string') return shown(line);
  return line.pieces
    .map((piece) => {
      const text = shown(plain(piece));
      if (typeof piece === 'string' || !isColored || text === '') return text;
      const [begin, end] = styleCodes[piece.style];
      return `${begin}${text}${end}`;
    })
    .join('');
}

/**
 * Replaces control characters by their codes. Events may contain them, and they could change the state of the
 * terminal.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (each) => {
    return `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** Cuts a line to one row of the terminal, because only one row can be overwritten. */
export function drawable(line: string, columns: number | undefined): string {
  const room = (columns || 80) - 1; // some terminals report no width, or 0
  return widthOf(line) <= room ? line : `${splitAt(line, Math.max(0, room - 1))[0]}…`;
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return 'somebody'; // the user id in a container may have no name
  }
}
