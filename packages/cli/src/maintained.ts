import type { Given } from './command.ts';
import { commandLine } from './suggested-command.ts';
import type { Terminal } from './terminal.ts';

/** A warning that no process continues this operation, and how the user can continue it. */
export function unmaintained(id: string, given: Given, terminal: Terminal): string {
  return (
    `no process that reports here runs maintenance, so nothing moves ${id} on: run it now with ` +
    `"${commandLine(`dlq replay --resume ${id}`, given, terminal)}", or start maintenance({ engine }) of @holdfast/events in a process.`
  );
}
