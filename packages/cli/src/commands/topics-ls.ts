import { topicControls } from '@holdfast/events';
import type { Command } from '../command.ts';
import { storeFlag, withStore } from '../store.ts';
import { span, table } from '../table.ts';

export const topicsLs: Command = {
  name: 'topics ls',
  summary: 'topics, and how many events wait where',
  flags: storeFlag,
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker, triage }) => {
      const rows: string[][] = [];
      for (const topic of await broker.topics()) {
        const counts = await broker.counts(topic);
        const parked = await triage.count({ topic });
        const standing = await topicControls(broker, topic).active();
        const controls = standing.map(({ control }) => control.kind);
        if (given.flags.json) terminal.out(JSON.stringify({ topic, ...counts, parked, controls }));
        const { ready, delayed, behind, held, leased, suspect, oldestReadyMs, nextDueInMs } = counts;
        rows.push([
          ...[topic, ...[ready, delayed, behind + held, leased, suspect, parked].map(String)],
          ready === 0 ? '-' : span(oldestReadyMs),
          nextDueInMs === undefined ? '-' : span(nextDueInMs),
          controls.join(' ') || '-',
        ]);
      }
      if (given.flags.json) return 0;
      const headings = [
        'TOPIC',
        'READY',
        'DELAYED',
        'WAITING',
        'IN HAND',
        'SUSPECT',
        'PARKED',
        'OLDEST',
        'NEXT DUE',
      ];
      terminal.out(rows.length === 0 ? 'There are no topics here.' : table([...headings, 'CONTROLS'], rows));
      return 0;
    }),
};
