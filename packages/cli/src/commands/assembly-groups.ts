import { withAssemblies } from '../assembly-ids.ts';
import type { Command } from '../command.ts';
import { countOf } from '../given-values.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag } from '../store.ts';
import { bad } from '../styled-text.ts';
import { table } from '../table.ts';
import { oneLine } from '../text-width.ts';

export const assemblyGroups: Command = {
  name: 'assembly groups',
  summary: 'parked assemblies by what a person would call the same error',
  flags: { ...storeFlag, limit: { value: 'count', says: 'at most so many groups; 20 unless given' } },
  examples: ['assembly groups', 'assembly groups --json'],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async ({ journal }) => {
      const groups = await journal.parkedGroups(countOf(given, 'limit', 1) ?? 20);
      if (given.flags.json) for (const group of groups) terminal.out(JSON.stringify(group));
      else if (groups.length === 0) terminal.out('No assembly is parked here.');
      else {
        const short = shortNames(
          groups.flatMap(({ fingerprint }) => fingerprint ?? []),
          terminal,
        );
        const rows = groups.map(({ name, because, fingerprint, count, message }) => [
          ...[fingerprint === undefined ? '' : short(fingerprint), String(count), name, because],
          bad(oneLine(message, 120)),
        ]);
        const headings = [
          { heading: 'GROUP', whole: true },
          { heading: 'ASSEMBLIES', align: 'right' },
          ...['PROGRAM', 'REASON'],
          { heading: 'ERROR OF THE LATEST', below: true },
        ] as const;
        terminal.out(table(headings, rows, terminal.columns));
      }
      return 0;
    }),
};
