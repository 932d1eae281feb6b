import { stopAdvice } from '@holdfast/events';
import type { Command } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { countOf } from '../given-values.ts';
import { nothingParked } from '../nothing-parked.ts';
import { cursorOf, pasteable } from '../page-cursor.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad } from '../styled-text.ts';
import { table } from '../table.ts';
import { oneLine, wrapText } from '../text-width.ts';
import { ago, spanLeft } from '../times.ts';

/** The list cuts errors to this many characters; "dlq show" prints them whole. */
const errorMax = 120;

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
  examples: [
    'dlq ls --topic orders --since 2h',
    'dlq ls --group 4f1d9ac0 --tenant acme',
    'dlq ls --status discarded --json',
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const { triage, controls } = engine;
      const cursor = cursorOf(given);
      const filter = await filterOf(given, engine);
      const page = { limit: countOf(given, 'limit', 1) ?? 20, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await triage.list(filter, page);
      if (given.flags.json) {
        for (const item of items) terminal.out(JSON.stringify(item));
        // Tell the reader that this page does not have all events. Standard output is only for JSON.
        if (next !== undefined) terminal.err(`holdfast: there are more, with --cursor ${pasteable(next)}`);
        return 0;
      }
      if (items.length === 0) {
        terminal.out(await nothingParked(engine, filter));
        return 0;
      }
      const { now } = await controls.active();
      const short = shortNames(
        items.map(({ id }) => id),
        terminal,
      );
      const rows = items.map((item) => [
        ...[short(item.id), item.topic, item.key ?? '', item.stop, String(item.finalAttempt)],
        ...[ago(item.parkedAt, now, terminal), spanLeft(item.removedInMs)],
        bad(oneLine(errorLine(item.reason, item.message), errorMax)),
      ]);
      const headings = [
        { heading: 'ID', whole: true },
        ...['TOPIC', 'KEY', 'STOP'],
        { heading: 'ATTEMPTS', align: 'right' },
        { heading: 'PARKED', whole: true },
        { heading: 'KEPT FOR', whole: true },
        { heading: 'ERROR', below: true },
      ] as const;
      terminal.out(table(headings, rows, terminal.columns));
      const total = await triage.count(filter);
      const more = next === undefined ? '' : `; more with --cursor ${pasteable(next)}`;
      terminal.out(`\n${wrapText(`${items.length} of ${total}${more}`, terminal.columns, 2)}`);
      const advised = items.flatMap(({ stop, message }) => {
        const advice = stopAdvice(stop, message);
        return advice === undefined ? [] : `${stop}: ${advice}.`;
      });
      for (const advice of new Set(advised)) terminal.out(wrapText(advice, terminal.columns, 2));
      return 0;
    }),
};
