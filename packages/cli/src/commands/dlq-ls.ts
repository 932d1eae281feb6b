import type { Command } from '../command.ts';
import { countOf, textOf } from '../given-values.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { storeFlag, withStore } from '../store.ts';
import { errorLine, oneLine, span, table } from '../table.ts';

export const dlqLs: Command = {
  name: 'dlq ls',
  summary: 'parked events, the latest first',
  flags: {
    ...storeFlag,
    ...filterFlags,
    ...statusFlag,
    limit: { value: 'count', says: 'at most so many; 20 unless given' },
    cursor: { value: 'cursor', says: 'the page after this one' },
  },
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage }) => {
      const cursor = textOf(given, 'cursor');
      const filter = filterOf(given);
      const page = { limit: countOf(given, 'limit', 1) ?? 20, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await triage.list(filter, page);
      if (given.flags.json) {
        for (const item of items) terminal.out(JSON.stringify(item));
        // Without this hint, a reader of the JSON might take one page for all events. The hint goes to standard error,
        // because standard output is for JSON only.
        if (next !== undefined) terminal.err(`holdfast: there are more, with --cursor ${next}`);
        return 0;
      }
      if (items.length === 0) {
        terminal.out('Nothing is parked here.');
        return 0;
      }
      const rows = items.map(({ id, topic, key = '', stop, finalAttempt, removedInMs, reason, message }) => [
        ...[id, topic, key, stop, String(finalAttempt), span(removedInMs)],
        oneLine(errorLine(reason, message), 80),
      ]);
      terminal.out(table(['ID', 'TOPIC', 'KEY', 'STOP', 'ATTEMPTS', 'KEPT FOR', 'ERROR'], rows));
      const total = await triage.count(filter);
      terminal.out(
        `\n${items.length} of ${total}${next === undefined ? '' : `; more with --cursor ${next}`}`,
      );
      return 0;
    }),
};
