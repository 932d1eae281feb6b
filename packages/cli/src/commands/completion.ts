import { type Command, UsageError } from '../command.ts';
import { completionScript, type Shell, shells } from '../completion-script.ts';
import { didYouMean } from '../did-you-mean.ts';
import { onlyOperand } from '../given-values.ts';

/** `all` is a function, because the list of commands contains this command itself. */
export function completionCommand(all: () => readonly Command[]): Command {
  return {
    name: 'completion',
    summary: 'print a script that completes commands and flags in your shell',
    operands: `<${shells.join('|')}>`,
    flags: {},
    examples: ['completion bash > ~/.local/share/bash-completion/completions/holdfast', 'completion fish'],
    async run(given, terminal) {
      const name = onlyOperand(given, 'the name of a shell');
      const shell = shells.find((each) => each === name) as Shell | undefined;
      if (shell === undefined)
        throw new UsageError(
          `there is no script for "${name}"; there are ${shells.join(', ')}${didYouMean(name, shells) || '.'}`,
        );
      terminal.out(completionScript(all(), shell));
      return 0;
    },
  };
}
