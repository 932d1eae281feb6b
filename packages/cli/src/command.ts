import { parseArgs } from 'node:util';
import { nearest } from 'holdfast/fields';
import { didYouMean } from './did-you-mean.ts';
import type { Terminal } from './terminal.ts';
import { widthOf, wrapped, wrapText } from './text-width.ts';
import { version } from './version.ts';

/** A flag of a command. If `value` is set, the flag takes a value, and help texts show it under this name. */
export interface Flag {
  readonly value?: string;
  /** True: the flag may be given several times. All its values are in `Given.lists`. */
  readonly many?: true;
  readonly says: string;
}

/** A command of the command line. `run` resolves with the exit code: 0 for success, 1 if a check failed. */
export interface Command {
  /** The words that the user types to call the command, such as `dlq ls`. */
  readonly name: string;
  readonly summary: string;
  /** The operands, as the help text shows them: `<id>`, `[id…]`. Default: none. */
  readonly operands?: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** Example command lines for the help text, without the word `holdfast`. */
  readonly examples: readonly string[];
  run(given: Given, terminal: Terminal): Promise<number>;
}

/** The operands and flags that the user typed, checked against the flags of the command. */
export interface Given {
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, string | true | undefined>>;
  /** The values of flags that may be given several times. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
}

/** Thrown for a wrong flag or value. The exit code is 2. */
export class UsageError extends Error {}

/** Thrown if the store or a file cannot be opened. The exit code is 3. */
export class StoreUnavailable extends Error {}

const everywhere: Record<string, Flag> = {
  json: { says: 'print one JSON object a line' },
  help: { says: 'print this' },
};

/**
 * Runs the command that the first words of `typed` name. Resolves with the exit code: 0 for success, 1 if a
 * check failed, 2 for wrong usage, 3 for any other error.
 */
export async function runCommand(
  commands: readonly Command[],
  typed: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    const args = commandFirst(commands, typed);
    if (args[0] === '--version') {
      terminal.out(version());
      return 0;
    }
    const command = find(commands, args);
    if (!command) return listCommands(commands, args, terminal);
    const given = read(command, args.slice(command.name.split(' ').length));
    if (given.flags.help) {
      terminal.out(helpOf(command, commands, terminal.columns));
      return 0;
    }
    const meant = longerName(command, commands, given);
    if (meant !== undefined)
      throw new UsageError(
        `there is no command "${command.name} ${given.operands[0]}"; did you mean "${meant}"?`,
      );
    return await command.run(given, terminal);
  } catch (error) {
    if (terminal.signal.aborted) return 130;
    terminal.err(`holdfast: ${(error as Error).message}`);
    return exitCodeOf(error);
  }
}

/**
 * Finds a longer command with a misspelt last word, as in `gateway chek my.yaml`. It checks only commands
 * with one operand. For other commands, the word may be a real operand.
 */
function longerName(
  { name, operands: expected = '' }: Command,
  commands: readonly Command[],
  { operands }: Given,
): string | undefined {
  const [first = ''] = operands;
  const isFile = expected.includes('.');
  if (!/^<[^ ]+>$/.test(expected) || /[^a-z]/i.test(first) || (operands.length < 2 && !isFile))
    return undefined;
  const longer = commands.map((each) => each.name).filter((each) => each.startsWith(`${name} `));
  const last = nearest(
    first,
    longer.map((each) => each.slice(name.length + 1)),
  );
  return last === undefined ? undefined : `${name} ${last}`;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return 2;
  const code = String((Object(error) as { code?: unknown }).code);
  return /^HOLDFAST_(OPTIONS|CONFIG|TOPIC|TRIAGE)/.test(code) ? 2 : 3;
}

/** Moves flags behind the name of the command: `--store a.db dlq ls` becomes `dlq ls --store a.db`. */
function commandFirst(commands: readonly Command[], typed: readonly string[]): readonly string[] {
  const takesValue = (flag: string) =>
    !flag.includes('=') && commands.some(({ flags }) => flags[flag.slice(2)]?.value !== undefined);
  let start = 0;
  while (typed[start]?.startsWith('--')) start += takesValue(typed[start]!) ? 2 : 1;
  const rest = typed.slice(start);
  const command = start === 0 ? undefined : find(commands, rest);
  if (!command) return typed;
  const length = command.name.split(' ').length;
  return [...rest.slice(0, length), ...typed.slice(0, start), ...rest.slice(length)];
}

function find(commands: readonly Command[], args: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => args[index] === word));
}

function listCommands(commands: readonly Command[], args: readonly string[], terminal: Terminal): number {
  const [first = '--help', second = ''] = args;
  const group = commands.filter(({ name }) => name.split(' ')[0] === first);
  const isAsked = isHelp(first) || (group.length > 0 && isHelp(second));
  if (!isAsked) terminal.err(`holdfast: ${unknownCommand(commands, group, args)}`);
  // The list of all commands is long, and would hide the message about the unknown command.
  if (!isAsked && group.length === 0) return 2;
  const print = isAsked ? terminal.out : terminal.err;
  print(
    `${isAsked ? 'holdfast <command>' : ''}\n${listed(group.length > 0 ? group : commands, terminal.columns)}`,
  );
  if (isAsked) print(`\n${wrapText(`Each has --help. ${storeHelp}`, terminal.columns)}`);
  return isAsked ? 0 : 2;
}

/** At most this many commands are suggested for one word. */
const suggestedMax = 4;

function unknownCommand(
  commands: readonly Command[],
  group: readonly Command[],
  args: readonly string[],
): string {
  const [first = '', second] = args;
  if (group.length === 0) {
    const firsts = new Set(commands.map(({ name }) => name.split(' ')[0]!));
    const longer = commands.map(({ name }) => name).filter((name) => name.split(' ').includes(first, 1));
    const meant = longer.slice(0, suggestedMax).map((name) => `"${name}"`);
    const hint = meant.length > 0 ? `; did you mean ${meant.join(' or ')}?` : didYouMean(first, firsts);
    return `there is no command "${first}"${hint || '.'} "holdfast --help" lists all.`;
  }
  if (second === undefined || second.startsWith('-')) return `"${first}" needs one of these words:`;
  const meant = [3, 2].flatMap((count) => {
    const names = group.map(({ name }) => name).filter((name) => name.split(' ').length === count);
    return nearest(args.slice(0, count).join(' '), names) ?? [];
  });
  return `there is no command "${first} ${second}"${meant[0] === undefined ? '.' : `; did you mean "${meant[0]}"?`}`;
}

function isHelp(word: string | undefined): boolean {
  return word === '--help' || word === 'help';
}

/** Lists commands in groups with the same first word. */
function listed(commands: readonly Command[], columns: number | undefined): string {
  const first = ({ name }: Command) => name.split(' ')[0]!;
  const groups = Object.groupBy(commands, (command) =>
    commands.some((other) => other !== command && first(other) === first(command)) ? first(command) : '',
  );
  return Object.values(groups)
    .map((group = []) => group.map((each) => lineOf(each, columns)).join('\n'))
    .join('\n\n');
}

function lineOf({ name, operands = '', summary }: Command, columns: number | undefined): string {
  return described(`${name} ${operands}`.trimEnd(), summary, 31, columns);
}

function described(
  term: string,
  description: string,
  termWidth: number,
  columns: number | undefined,
): string {
  const indent = ' '.repeat(termWidth + 4);
  const lines = columns === undefined ? [description] : wrapped(description, columns - indent.length, true);
  const text = lines.join(`\n${indent}`);
  if (widthOf(term) > termWidth && columns !== undefined) return `  ${term}\n${indent}${text}`;
  return `  ${term.padEnd(termWidth)}  ${text}`;
}

const storeHelp =
  'Those that need a store take --store <file or postgres URL>, or HOLDFAST_STORE.\n' +
  'Exit codes: 0 good, 1 bad news, 2 a wrong question, 3 nobody could be asked.\n' +
  'holdfast --version says which one this is.';

function read(command: Command, args: readonly string[]): Given {
  const flags = { ...command.flags, ...everywhere };
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' } as const]),
  );
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    const wrong = (what: string) =>
      new UsageError(`${token.rawName} ${what}; try "holdfast ${command.name} --help".`);
    if (!flag) {
      const names = Object.keys(flags).map((name) => `--${name}`);
      const meant = didYouMean(token.rawName, names, '');
      if (meant === '') throw wrong('is not a flag');
      throw new UsageError(`${token.rawName} is not a flag${meant} Try "holdfast ${command.name} --help".`);
    }
    if (flag.value && (token.value ?? '') === '') throw wrong(`needs a value, ${flag.value}`);
    if (!flag.value && token.value !== undefined) throw wrong(`takes no value, got "${token.value}"`);
  }
  if (positionals.length > 0 && !command.operands) {
    throw new UsageError(`"${positionals[0]}" means nothing to "holdfast ${command.name}".`);
  }
  const lists: Record<string, string[]> = {};
  for (const token of tokens) {
    if (token.kind !== 'option' || !flags[token.name]?.many) continue;
    lists[token.name] ??= [];
    lists[token.name]!.push(token.value ?? '');
  }
  return { operands: positionals, flags: values as Given['flags'], lists };
}

function helpOf(
  { name, summary, operands = '', flags, examples }: Command,
  commands: readonly Command[],
  columns: number | undefined,
): string {
  const lines = Object.entries({ ...flags, ...everywhere }).map(([flag, { value, many, says }]) => {
    const term = value ? `--${flag} <${value}>` : `--${flag}`;
    return described(term, `${says}${many ? '; several times' : ''}`, 24, columns);
  });
  const longer = commands
    .filter((each) => each.name.startsWith(`${name} `))
    .map((each) => lineOf(each, columns));
  const others = longer.length > 0 ? ['', ...longer] : [];
  const shown = ['', 'examples', ...examples.map((each) => exampleLine(each, columns))];
  const usage = wrapText(`holdfast ${name} ${operands}`.trimEnd(), columns, 2);
  return [usage, wrapText(summary, columns), '', ...lines, ...shown, ...others].join('\n');
}

/**
 * Breaks a long example into lines. Each line but the last ends with a backslash, so that the user can paste
 * the whole command.
 */
function exampleLine(example: string, columns: number | undefined): string {
  const room = columns === undefined ? undefined : columns - ' \\'.length;
  return wrapText(`  holdfast ${example}`, room, 4).replaceAll('\n', ' \\\n');
}
