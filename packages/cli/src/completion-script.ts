import type { Command } from './command.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** The script contains all commands and flags, so completing does not start `holdfast`. */
export function completionScript(commands: readonly Command[], shell: Shell): string {
  return shell === 'fish'
    ? fishScript(commands)
    : shell === 'zsh'
      ? zshScript(commands)
      : bashScript(commands);
}

/** The words that can follow the words typed so far: `dlq` → `ls show …`. */
function wordsAfter(commands: readonly Command[]): Map<string, Set<string>> {
  const after = new Map<string, Set<string>>();
  for (const { name } of commands) {
    const words = name.split(' ');
    for (const [index, word] of words.entries()) {
      const before = words.slice(0, index).join(' ');
      after.set(before, (after.get(before) ?? new Set()).add(word));
    }
  }
  return after;
}

function flagsOf({ flags }: Command): string[] {
  return [...Object.keys(flags), 'json', 'help'].map((flag) => `--${flag}`);
}

function bashScript(commands: readonly Command[]): string {
  const words = [...wordsAfter(commands)].map(
    ([before, next]) => `    ${quoted(before)}) words=${quoted([...next].join(' '))} ;;`,
  );
  const flags = commands.map(
    (command) => `    ${quoted(command.name)}) flags=${quoted(flagsOf(command).join(' '))} ;;`,
  );
  return `# bash completion of holdfast
_holdfast_words() {
  case "$1" in
${words.join('\n')}
  esac
}
_holdfast_flags() {
  case "$1" in
${flags.join('\n')}
    *) return 1 ;;
  esac
}
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" typed="" words="" flags="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    [[ "\${COMP_WORDS[index]}" == -* ]] || typed="\${typed:+$typed }\${COMP_WORDS[index]}"
  done
  _holdfast_words "$typed"
  # What follows the words of a command are its operands: look for the longest beginning that is a command.
  until _holdfast_flags "$typed" || [[ "$typed" != *" "* ]]; do typed="\${typed% *}"; done
  if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W "\${flags:---help}" -- "$current"))
  elif [[ -n "$words" ]]; then COMPREPLY=($(compgen -W "$words" -- "$current"))
  else COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _holdfast holdfast`;
}

function zshScript(commands: readonly Command[]): string {
  // zsh can run the completion script of bash unchanged.
  return `#compdef holdfast
autoload -U +X bashcompinit && bashcompinit
${bashScript(commands)}`;
}

function fishScript(commands: readonly Command[]): string {
  const lines = commands.flatMap(({ name, summary, flags }) => {
    const words = name.split(' ');
    const seen = (count: number) =>
      words
        .slice(0, count)
        .map((word) => `__fish_seen_subcommand_from ${word}`)
        .join('; and ');
    const last = words.at(-1)!;
    const isFirst = words.length === 1 ? '__fish_use_subcommand' : seen(words.length - 1);
    const own = `complete -c holdfast -f -n ${quoted(isFirst)} -a ${quoted(last)} -d ${quoted(summary)}`;
    const its = Object.entries(flags).map(
      ([flag, { value, says }]) =>
        `complete -c holdfast -n ${quoted(seen(words.length))} -l ${flag}${value === undefined ? '' : ' -r'} -d ${quoted(says)}`,
    );
    return [own, ...its];
  });
  const firsts = [
    ...new Set(commands.filter(({ name }) => name.includes(' ')).map(({ name }) => name.split(' ')[0]!)),
  ];
  const groups = firsts.map((word) => `complete -c holdfast -f -n __fish_use_subcommand -a ${quoted(word)}`);
  return ['# fish completion of holdfast', ...groups, ...lines].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
