import { spanText } from '@holdfast/events';
import type { Command } from '../command.ts';
import { storeFlag, withStore } from '../store.ts';
import { table } from '../table.ts';
import { topicOperand } from '../topics.ts';

/** Due events are counted in intervals. These are their upper bounds, in ms from now. */
const dueBounds = [0, 1e3, 1e4, 6e4, 6e5, 36e5, 864e5];
const barWidth = 30;

export const topicsDue: Command = {
  name: 'topics due',
  summary: 'when the unfinished events of a topic are due',
  operands: '<topic>',
  flags: storeFlag,
  examples: ['topics due orders'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker }) => {
      const topic = await topicOperand(given, broker);
      const counts = await broker.due(topic, dueBounds);
      const bins = counts.map((count, index) => ({
        fromMs: index === 0 ? null : dueBounds[index - 1]!,
        toMs: dueBounds[index] ?? null,
        count,
      }));
      if (given.flags.json) {
        for (const bin of bins) terminal.out(JSON.stringify(bin));
        return 0;
      }
      const most = Math.max(1, ...counts);
      const rows = bins.map(({ fromMs, toMs, count }) => [
        whenText(fromMs, toMs),
        String(count),
        '█'.repeat(Math.ceil((barWidth * count) / most)),
      ]);
      terminal.out(table(['DUE', { heading: 'EVENTS', align: 'right' }, ''], rows, terminal.columns));
      return 0;
    }),
};

function whenText(fromMs: number | null, toMs: number | null): string {
  if (fromMs === null) return 'now';
  if (toMs === null) return `after ${spanText(fromMs)}`;
  return fromMs === 0 ? `within ${spanText(toMs)}` : `${spanText(fromMs)} to ${spanText(toMs)}`;
}
