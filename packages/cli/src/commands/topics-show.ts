import { consumersOf, processName, spanText, topicControls } from '@holdfast/events';
import type { Command } from '../command.ts';
import { controlText } from '../control-text.ts';
import { errorLine } from '../error-line.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, styled, warning } from '../styled-text.ts';
import { type Cell, table } from '../table.ts';
import { oneLine, wrapText } from '../text-width.ts';
import { ago } from '../times.ts';
import { topicOperand } from '../topics.ts';

export const topicsShow: Command = {
  name: 'topics show',
  summary: 'one topic: counts, controls, consumers of all processes, and why events are parked',
  operands: '<topic>',
  flags: storeFlag,
  examples: ['topics show orders'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker, triage, controls, presence }) => {
      const topic = await topicOperand(given, broker);
      const counts = await broker.counts(topic);
      const active = await topicControls(broker, topic).active();
      const consumers = consumersOf(await presence.processes(), topic);
      const parked = await triage.count({ topic });
      const { items: groups } = await triage.groups({ topic }, { limit: 5 });
      if (given.flags.json) {
        const shown = consumers.map(({ process, ...state }) => ({ ...state, process: process.id }));
        terminal.out(
          JSON.stringify({ topic, ...counts, parked, controls: active, consumers: shown, groups }),
        );
        return 0;
      }
      const { now } = await controls.active();
      const line = (name: string, value: Cell) => terminal.out(styled(name.padEnd(12), value));
      line('topic', topic);
      line(
        'ready',
        counts.ready === 0 ? '0' : `${counts.ready}, the oldest for ${spanText(counts.oldestReadyMs)}`,
      );
      const hasNext = counts.delayed > 0 && counts.nextDueInMs !== undefined;
      const next = !hasNext ? '' : `, the next in ${spanText(counts.nextDueInMs)}`;
      line('delayed', `${counts.delayed}${next}`);
      line('waiting', `${counts.behind} behind their key, ${counts.held} held, ${counts.blocking} blocking`);
      line('in hand', String(counts.leased));
      line('suspect', counts.suspect > 0 ? bad(String(counts.suspect)) : '0');
      line('parked', parked > 0 ? bad(String(parked)) : '0');
      line('counted', ago(counts.asOf, now, terminal));
      for (const control of active)
        terminal.out(
          styled(
            warning(wrapText(`control     ${controlText(control, now, terminal)}`, terminal.columns, 12)),
          ),
        );
      terminal.out('');
      if (consumers.length === 0) terminal.out('No process reports a consumer of this topic.');
      else {
        const rows = consumers.map(({ name, status, concurrency, running, queued, waitsFor, process }) => [
          ...[name, processName(process), status === 'running' || status === 'idle' ? status : bad(status)],
          ...[`${running} of ${concurrency}`, String(queued), waitsFor.join(' ')],
        ]);
        const headings = [
          'CONSUMER',
          'PROCESS',
          'STATUS',
          'HANDLERS',
          { heading: 'QUEUED', align: 'right' },
          'WAITS FOR',
        ] as const;
        terminal.out(table(headings, rows, terminal.columns));
      }
      if (groups.length > 0) {
        const short = shortNames(
          groups.map(({ fingerprint }) => fingerprint),
          terminal,
        );
        const rows = groups.map(({ fingerprint, count, lastAt, reason, message }) => [
          ...[short(fingerprint), String(count), ago(lastAt, now, terminal)],
          bad(oneLine(errorLine(reason, message), 120)),
        ]);
        const headings = [
          { heading: 'GROUP', whole: true },
          { heading: 'PARKED', align: 'right' },
          { heading: 'LAST', whole: true },
          { heading: 'ERROR', below: true },
        ] as const;
        terminal.out('');
        terminal.out(table(headings, rows, terminal.columns));
      }
      return 0;
    }),
};
