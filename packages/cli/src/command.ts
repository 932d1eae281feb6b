import { parseArgs } from 'node:util';
import type { Terminal } from './terminal.ts';
import { version } from './version.ts';

/** A flag of a command. With `value` it takes a value, which help texts show under this name. */
export interface Flag {
  readonly value?: string;
  /** The flag may be given several times. All values are in `Given.lists`. */
  readonly many?: true;
  readonly says: string;
}

/** A command of the command line. `run` resolves to the exit code: 0 success, 1 a check has failed. */
export interface Command {
  /** The words that call the command: `dlq ls`. */
  readonly name: string;
  readonly summary: string;
  /** The operands for the help text: `<id>`, `[id…]`; none unless given. */
  readonly operands?: string;
  readonly flags: Readonly<Record<string, Flag>>;
  run(given: Given, terminal: Terminal): Promise<number>;
}

/** The flags and operands that the user has given. */
export interface Given {
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, string | true | undefined>>;
  /** The values of flags that may be given several times. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
}

/** Thrown for a flag or a value that cannot be used. The exit code is 2. */
export class UsageError extends Error {}

/** Thrown if the store or a file cannot be opened. The exit code is 3. */
export class StoreUnavailable extends Error {}

const everywhere: Record<string, Flag> = {
  json: { says: 'print one JSON object a line' },
  help: { says: 'print this' },
};

/**
 * Runs the command that `args` name. Resolves to the exit code: 0 success, 1 a check has failed, 2 wrong usage, 3 any
 * other error.
 */
export async function runCommand(
  commands: readonly Command[],
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    if (args[0] === '--version') {
      terminal.out(version());
      return 0;
    }
    const command = find(commands, args);
    if (!command) return listCommands(commands, args, terminal);
    const given = read(command, args.slice(command.name.split(' ').length));
    if (given.flags.help) {
      terminal.out(helpOf(command, commands));
      return 0;
    }
    return await command.run(given, terminal);
  } catch (error) {
    if (terminal.signal.aborted) return 130;
    terminal.err(`holdfast: ${(error as Error).message}`);
    return exitCodeOf(error);
  }
}

/** The exit code of an error: 2 for wrong usage and for invalid options or documents, 3 for any other error. */
function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return 2;
  const code = String((Object(error) as { code?: unknown }).code);
  return /^HOLDFAST_(OPTIONS|CONFIG|TOPIC|TRIAGE)/.test(code) ? 2 : 3;
}

function find(commands: readonly Command[], args: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => args[index] === word));
}

function listCommands(commands: readonly Command[], args: readonly string[], terminal: Terminal): number {
  const [first = '--help', second] = args;
  const near = commands.filter(({ name }) => name.split(' ')[0] === first);
  const isAsked = isHelp(first) || (near.length > 0 && isHelp(second));
  const list = (near.length > 0 ? near : commands).map(lineOf);
  const print = isAsked ? terminal.out : terminal.err;
  if (!isAsked) print(`holdfast: there is no command "${args.slice(0, 2).join(' ')}".\n`);
  print([...list, '', `Each has --help. ${storeHelp}`].join('\n'));
  return isAsked ? 0 : 2;
}

function isHelp(word: string | undefined): boolean {
  return word === '--help' || word === 'help';
}

function lineOf({ name, operands = '', summary }: Command): string {
  return `  ${`holdfast ${name} ${operands}`.trimEnd().padEnd(41)}  ${summary}`;
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
    if (!flag) throw wrong('is not a flag');
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

function helpOf({ name, summary, operands = '', flags }: Command, commands: readonly Command[]): string {
  const lines = Object.entries({ ...flags, ...everywhere }).map(([flag, { value, many, says }]) => {
    return `  ${(value ? `--${flag} <${value}>` : `--${flag}`).padEnd(26)}${says}${many ? '; several times' : ''}`;
  });
  const longer = commands.filter((each) => each.name.startsWith(`${name} `)).map(lineOf);
  const others = longer.length > 0 ? ['', ...longer] : [];
  return [`holdfast ${name} ${operands}`.trimEnd(), summary, '', ...lines, ...others].join('\n');
}
