import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';

export type Command = readonly string[];

export interface CommandResult {
  /** 1 where a signal ended the command. */
  readonly code: number;
  /** Standard output and error, in the order they arrived; empty where they were shown. */
  readonly output: string;
}

export const root: string = path.resolve(import.meta.dirname, '..');

const running = new Set<ChildProcess>();

/**
 * Names a tool by its JavaScript file, so that it runs on this runtime, whatever `node` the PATH finds,
 * and on Windows without a shell.
 */
export function tool(file: string, ...options: string[]): Command {
  return [process.execPath, path.join(root, 'node_modules', file), ...options];
}

/** One of our own TypeScript files, with packages resolved to source. */
export function script(file: string, ...options: string[]): Command {
  return [process.execPath, '--conditions=holdfast-source', path.join(root, file), ...options];
}

/** Runs a command and keeps what it prints. */
export function capture(command: Command): Promise<CommandResult> {
  return start(command, 'pipe');
}

/** Runs a command that prints straight to our own terminal. */
export function show(command: Command): Promise<CommandResult> {
  return start(command, 'inherit');
}

/** Ctrl-C ends what we have started and then us, with the exit code that a shell expects. */
export function endOnSignal(): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => {
      for (const child of running) child.kill(signal);
      process.exit(code);
    });
  }
}

function start(command: Command, output: 'pipe' | 'inherit'): Promise<CommandResult> {
  const [file, ...options] = command;
  if (file === undefined) throw new TypeError('A command needs a program to run, and this one is empty.');
  return new Promise((resolve, reject) => {
    const child = spawn(file, options, {
      cwd: root,
      stdio: ['ignore', output, output],
      env: environment(output),
    });
    running.add(child);
    const chunks: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      running.delete(child);
      resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString().trimEnd() });
    });
  });
}

/** Some tools colour their output even into a pipe, where it is only noise. */
function environment(output: 'pipe' | 'inherit'): NodeJS.ProcessEnv {
  if (output === 'inherit') return process.env;
  const { FORCE_COLOR: _, ...rest } = process.env;
  return { ...rest, NO_COLOR: '1' };
}
