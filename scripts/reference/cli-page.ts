import { commands } from '@holdfast/cli';
import { code, page, table } from './markdown.ts';

export function cliPage(): string {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0]!);
  const parts = [...groups].map(([group, all]) => {
    const each = all.map(({ name, operands = '', summary, flags, examples }) => {
      const rows = Object.entries(flags).map(([flag, { value, many, says }]) => [
        code(value ? `--${flag} <${value}>` : `--${flag}`),
        `${says}${many ? '; several times' : ''}`,
      ]);
      const shown = examples.map((example) => `holdfast ${example}`).join('\n');
      const title = code(`holdfast ${name} ${operands}`.trimEnd());
      return [
        `### ${title}`,
        `${summary[0]!.toUpperCase()}${summary.slice(1)}.`,
        ...(rows.length > 0 ? [table(['flag', 'what it does'], rows)] : []),
        ...(shown === '' ? [] : [`\`\`\`sh\n${shown}\n\`\`\``]),
      ].join('\n\n');
    });
    return [`## ${group}`, ...each].join('\n\n');
  });
  return page(
    'Every command',
    'The same as `holdfast <command> --help`. Every command takes `--json` (one object a line) and `--help`; those that need a store take ' +
      '`--store <file or postgres URL>`, or `HOLDFAST_STORE`. Exit codes: 0 good, 1 bad news, 2 a wrong question, 3 nobody could be asked.',
    parts,
  );
}
