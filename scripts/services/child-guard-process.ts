import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { GuardCommand, GuardReport, GuardSpec } from './child-guard.ts';
import type { ServerCommand } from './recipe.ts';

/**
 * Stands between us and a server, in a process of its own: when we are gone, however we went, our end of its input closes,
 * and it stops the server and removes its folder.
 */

/** After this long an orderly end is not waited for any more. */
const patienceMs = 10_000;

const spec: GuardSpec = JSON.parse(process.argv[2] ?? '');
const logFile = path.join(spec.folder, 'log');
const companion = spec.companion && run(spec.companion);
let server: ChildProcess | undefined;

// This is a process group of its own; a signal to it must stop the server, too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, remove);

// The parent may be gone: then reports have no reader.
process.stdout.on('error', () => {});

let unread = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text: string) => {
  const lines = (unread + text).split('\n');
  unread = lines.pop() ?? '';
  for (const line of lines) execute(line as GuardCommand);
});
process.stdin.on('end', remove);
companion?.on('error', (error) => report({ ended: error.message }));
start();

function execute(order: GuardCommand): void {
  if (order === 'start') start();
  if (order === 'stop') server?.kill(spec.stopSignal);
  if (order === 'kill') server?.kill('SIGKILL');
}

function start(): void {
  const child = run(spec.command);
  server = child;
  child.on('error', (error) => report({ ended: error.message }));
  child.on('spawn', () => report({ pid: child.pid! }));
  child.on('exit', (code, signal) => {
    server = undefined;
    report({ ended: `it ended with ${code ?? signal}: ${lastLines()}` });
  });
}

function run([program, ...options]: ServerCommand): ChildProcess {
  const log = openSync(logFile, 'a');
  const env = { ...process.env, ...spec.environment };
  const child = spawn(program, options, { cwd: spec.folder, env, stdio: ['ignore', log, log], ...spec.user });
  closeSync(log);
  return child;
}

function remove(): void {
  if (server === undefined) leave();
  server?.once('exit', leave);
  server?.kill(spec.stopSignal);
  setTimeout(() => server?.kill('SIGKILL'), patienceMs).unref();
}

function leave(): void {
  companion?.once('exit', leaveAlone);
  if (!companion?.kill('SIGKILL')) leaveAlone();
}

function leaveAlone(): void {
  rmSync(spec.folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit();
}

function lastLines(): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
}

function report(what: GuardReport): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
