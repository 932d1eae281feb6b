import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { commands, runCommand, type Terminal } from '@holdfast/cli';

const main = path.resolve(import.meta.dirname, '../src/main.ts');

/** The words that run the command as a process, from its source. */
export const command = [process.execPath, '--conditions=holdfast-source', '--no-warnings', main] as const;

/** The program of util-linux that runs another one in a pseudo-terminal. */
export const script = '/usr/bin/script';

/** Runs the command as a process of its own, with its output in pipes. */
export async function holdfast(args: readonly string[], env: Record<string, string> = {}) {
  const [node, ...before] = command;
  const child = spawn(node, [...before, ...args], { env: cleanEnv(env) });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, out, err, json: () => jsonLines(out) };
}

/**
 * Runs the command in a pseudo-terminal of so many columns. `screen` is everything that it printed there. When
 * `isEnough` is true of it, Ctrl-C is pressed.
 */
export async function inTerminal(
  args: readonly string[],
  env: Record<string, string> = {},
  columns = 80,
  isEnough: (screen: string) => boolean = () => false,
) {
  const words = [...command, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const child = spawn(script, ['-qec', `stty cols ${columns} rows 50; ${words}`, '/dev/null'], {
    env: { ...cleanEnv(env), TERM: 'xterm', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  let isPressed = false;
  child.stdout.on('data', (chunk) => {
    screen += chunk;
    if (isPressed || !isEnough(screen)) return;
    isPressed = true;
    child.stdin.write('\x03');
  });
  const [code] = await once(child, 'close');
  screen = screen.replaceAll('\r\n', '\n');
  return { code, screen, lines: stripStyles(screen).split('\n') };
}

/** Runs the command without a process of its own: for the many ways to ask. It is aborted when `isEnough` is true. */
export async function ask(
  args: readonly string[],
  env: Record<string, string> = {},
  isEnough: (out: string) => boolean = () => false,
  columns?: number,
) {
  const ending = new AbortController();
  let out = '';
  let err = '';
  const terminal: Terminal = {
    env,
    isInteractive: false,
    columns,
    program: 'holdfast',
    user: 'ann',
    out: (line) => {
      out += `${line}\n`;
      if (isEnough(out)) ending.abort();
    },
    err: (line) => {
      err += `${line}\n`;
    },
    draw: () => {},
    clear: () => {},
    signal: ending.signal,
  };
  const code = await runCommand(commands, args, terminal);
  return { code, out, err, json: () => jsonLines(out) };
}

function cleanEnv(env: Record<string, string>): NodeJS.ProcessEnv {
  const { NO_COLOR: _, FORCE_COLOR: __, ...rest } = process.env;
  return { ...rest, HOLDFAST_STORE: '', ...env };
}

function stripStyles(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: styles are control sequences
  return text.replace(/\x1b\[\d+m/g, '');
}

// biome-ignore lint/suspicious/noExplicitAny: tests read all kinds of answers
function jsonLines(text: string): any[] {
  return text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
