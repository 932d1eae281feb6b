import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { root } from '../command.ts';

export interface RunningExample {
  /** All that the program has printed so far, errors included. */
  output(): string;
  /** Waits until the program has printed this, and returns the match. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
}

/** Runs what `npm start -w examples/<name>` runs. The process ends with the test at the latest. */
export async function startExample(
  name: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningExample> {
  const folder = path.join(root, 'examples', name);
  const { scripts } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
  const [program, ...options] = (scripts.start as string).split(' ');
  if (program !== 'node') throw new Error(`The script "start" of ${name} runs ${program} instead of node.`);
  const child = spawn(process.execPath, options, { cwd: folder, env: { ...process.env, ...environment } });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    output: () => printed,
    async printed(pattern) {
      await expect.poll(() => printed, { timeout: 15_000 }).toMatch(pattern);
      return pattern.exec(printed)!;
    },
    ended,
    signal: (signal) => void child.kill(signal),
  };
}

/** The block of the README of an example that shows what it prints. */
export async function printedInReadme(name: string): Promise<string> {
  const readme = await readFile(path.join(root, 'examples', name, 'README.md'), 'utf8');
  const block = /```text\n([\s\S]*?)```/.exec(readme)?.[1];
  if (block === undefined) throw new Error(`The README of ${name} does not show what it prints.`);
  return block;
}

/** A folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-example-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
