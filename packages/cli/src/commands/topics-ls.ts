import { spanText, topicControls } from '@holdfast/events';
import type { Command } from '../command.ts';
import { controlText } from '../control-text.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, warning } from '../styled-text.ts';
import { type Cell, type Row, table } from '../table.ts';

export const topicsLs: Command = {
  name: 'topics ls',
  summary: 'topics, how many events wait where, and which controls hold',
  flags: storeFlag,
  examples: ['topics ls', 'topics ls --json'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker, triage, controls }) => {
      const rows: Row[] = [];
      const { now } = await controls.active();
      for (const topic of await broker.topics()) {
        const counts = await broker.counts(topic);
        const parked = await triage.count({ topic });
        const active = await topicControls(broker, topic).active();
        if (given.flags.json) terminal.out(JSON.stringify({ topic, ...counts, parked, controls: active }));
        const { ready, delayed, behind, held, leased, suspect, oldestReadyMs, nextDueInMs } = counts;
        rows.push([
          ...[topic, ...[ready, delayed, behind + held, leased].map(String)],
          ...[worse(suspect), worse(parked)],
          ready === 0 ? '-' : spanText(oldestReadyMs),
          nextDueInMs === undefined ? '-' : nextDueInMs === 0 ? 'now' : spanText(nextDueInMs),
        ]);
        for (const control of active) rows.push(warning(controlText(control, now, terminal)));
      }
      if (given.flags.json) return 0;
      const numbers = ['READY', 'DELAYED', 'WAITING', 'IN HAND', 'SUSPECT', 'PARKED', 'OLDEST', 'NEXT DUE'];
      const headings = ['TOPIC', ...numbers.map((heading) => ({ heading, align: 'right' }) as const)];
      terminal.out(rows.length === 0 ? 'There are no topics here.' : table(headings, rows, terminal.columns));
      return 0;
    }),
};

/** Counts above 0 are red. */
function worse(count: number): Cell {
  return count === 0 ? '0' : bad(String(count));
}
