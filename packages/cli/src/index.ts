export { type Command, type Flag, type Given, runCommand } from './command.ts';
export { commands } from './commands.ts';
export type { Terminal } from './terminal.ts';
