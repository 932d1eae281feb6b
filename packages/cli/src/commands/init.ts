import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { type Command, UsageError } from '../command.ts';
import { writeText } from '../files.ts';
import { starterFiles } from '../starter-files.ts';

export const init: Command = {
  name: 'init',
  summary: 'write a starter that runs: client, consumer, assembly, gateway',
  operands: '[folder]',
  flags: { force: { says: 'write over files that are there' } },
  examples: ['init', 'init my-shop'],
  async run(given, terminal) {
    if (given.operands.length > 1)
      throw new UsageError(`one folder is enough, got ${given.operands.length}.`);
    const folder = given.operands[0] ?? '.';
    const files = starterFiles(path.basename(path.resolve(folder)));
    const there = Object.keys(files).filter((file) => existsSync(path.join(folder, file)));
    if (there.length > 0 && given.flags.force !== true)
      throw new UsageError(
        `${path.join(folder, there[0]!)} is there already; nothing was written. --force writes over it.`,
      );
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      await writeText(path.join(folder, file), text);
      if (given.flags.json) terminal.out(JSON.stringify({ file: path.join(folder, file) }));
    }
    if (given.flags.json) return 0;
    const go = folder === '.' ? '' : `cd ${folder} && `;
    terminal.out(`Wrote ${Object.keys(files).join(', ')}.\n\n  ${go}npm install && npm start\n`);
    terminal.out('README.md says what each file does.');
    return 0;
  },
};
