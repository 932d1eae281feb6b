import type { Command } from '../command.ts';
import { countOf } from '../given-values.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { storeFlag, withStore } from '../store.ts';
import { errorLine, oneLine, table } from '../table.ts';

export const dlqGroups: Command = {
  name: 'dlq groups',
  summary: 'parked events by what a person would call the same error',
  flags: {
    ...storeFlag,
    ...filterFlags,
    ...statusFlag,
    limit: { value: 'count', says: 'at most so many groups; 20 unless given' },
  },
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage }) => {
      const { items } = await triage.groups(filterOf(given), { limit: countOf(given, 'limit', 1) ?? 20 });
      if (given.flags.json) for (const item of items) terminal.out(JSON.stringify(item));
      else if (items.length === 0) terminal.out('Nothing is parked here.');
      else {
        const rows = items.map(({ fingerprint, count, lastAt, topics, reason, message }) => [
          ...[fingerprint, String(count), new Date(lastAt).toISOString(), topics.join(' ')],
          oneLine(errorLine(reason, message), 80),
        ]);
        terminal.out(table(['GROUP', 'EVENTS', 'LAST', 'TOPICS', 'ERROR'], rows));
      }
      return 0;
    }),
};
