import { isEmptyFilter } from '@holdfast/contracts';
import { differences } from '@holdfast/events';
import { type Command, UsageError } from '../command.ts';
import { countOf } from '../given-values.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { storeFlag, withStore } from '../store.ts';
import { bold } from '../styled-text.ts';
import { table } from '../table.ts';

export const dlqDiffers: Command = {
  name: 'dlq differs',
  summary: 'what these parked events have more often than the others of their topics',
  flags: {
    ...storeFlag,
    ...filterFlags,
    ...statusFlag,
    compare: { value: 'header', many: true, says: 'compare this header, too' },
    limit: { value: 'count', says: 'at most so many; 10 unless given' },
  },
  examples: ['dlq differs --group 4f1d9ac0', 'dlq differs --since 1h --compare region'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const filter = await filterOf(given, engine);
      if (isEmptyFilter(filter)) throw new UsageError('which events? Say a filter such as --group.');
      const headers = given.lists.compare ?? [];
      const limit = countOf(given, 'limit', 1) ?? 10;
      const found = await differences(engine.triage, filter, { headers, limit });
      if (given.flags.json) for (const each of found) terminal.out(JSON.stringify(each));
      else if (found.length === 0) terminal.out('Nothing is different about them.');
      else {
        const rows = found.map(({ by, value, share, otherShare, count }) => [
          ...[typeof by === 'string' ? by : `header ${by.header}`, bold(value ?? '(none)')],
          ...[percent(share), percent(otherShare), String(count)],
        ]);
        const numbers = ['OF THESE', 'OF OTHERS', 'EVENTS'];
        const headings = [
          'WHAT',
          'VALUE',
          ...numbers.map((heading) => ({ heading, align: 'right' }) as const),
        ];
        terminal.out(table(headings, rows, terminal.columns));
      }
      return 0;
    }),
};

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
