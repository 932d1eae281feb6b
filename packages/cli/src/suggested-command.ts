import type { Given } from './command.ts';
import { textOf } from './given-values.ts';
import { withoutSecrets } from './store.ts';
import type { Terminal } from './terminal.ts';
import { widthOf, wrapText } from './text-width.ts';

type Where = Pick<Terminal, 'program' | 'columns'>;

/**
 * Returns a command line that the user can paste. It repeats the `--store` that the user gave, without its
 * password. `words` may end with a hint such as `--why …`.
 */
export function commandLine(words: string, given: Given, { program }: Pick<Terminal, 'program'>): string {
  const store = textOf(given, 'store');
  const [, command = words, hint = ''] = /^(.*?)( --why …)?$/.exec(words) ?? [];
  const where = store === undefined ? '' : ` --store ${shellWord(withoutSecrets(store))}`;
  return `${program} ${command}${where}${hint}`;
}

/** Quotes a word of a command, if the shell would change it. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns a sentence that ends with a command: `Undo it with "holdfast …".` A long command gets lines of its
 * own, so that the user can paste it.
 */
export function withCommand(sentence: string, words: string, given: Given, terminal: Where): string {
  const command = commandLine(words, given, terminal);
  const line = `${sentence} "${command}".`;
  if (terminal.columns === undefined || widthOf(line) <= terminal.columns) return line;
  return `${wrapText(`${sentence}:`, terminal.columns)}\n${wrapCommand(`  ${command}`, terminal.columns)}`;
}

/**
 * Breaks a long command into lines. Each line but the last ends with a backslash, so that the user can paste
 * the whole command.
 */
export function wrapCommand(command: string, columns: number | undefined): string {
  const room = columns === undefined ? undefined : columns - ' \\'.length;
  return columns !== undefined && widthOf(command) <= columns
    ? command
    : wrapText(command, room, 4).replaceAll('\n', ' \\\n');
}
