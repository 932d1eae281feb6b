import { isEmptyFilter, type ParkedFilter, type Triage } from '@holdfast/contracts';
import { differences } from '@holdfast/events';
import { type Command, UsageError } from '../command.ts';
import { countOf } from '../given-values.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { storeFlag, withStore } from '../store.ts';
import { bold } from '../styled-text.ts';
import { table } from '../table.ts';
import { wrapText } from '../text-width.ts';

export const dlqDiffers: Command = {
  name: 'dlq differs',
  summary: 'what these parked events have more often than the others of their topics',
  flags: {
    ...storeFlag,
    ...filterFlags,
    ...statusFlag,
    compare: { value: 'header', many: true, says: 'compare this header, too: region, or header.region' },
    limit: { value: 'count', says: 'at most so many; 10 unless given' },
  },
  examples: ['dlq differs --group 4f1d9ac0', 'dlq differs --since 1h --compare region'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const filter = await filterOf(given, engine);
      if (isEmptyFilter(filter)) throw new UsageError('which events? Say a filter such as --group.');
      const headers = (given.lists.compare ?? []).map((name) => name.replace(/^header\./, ''));
      const limit = countOf(given, 'limit', 1) ?? 10;
      const found = await differences(engine.triage, filter, { headers, limit });
      if (given.flags.json) for (const each of found) terminal.out(JSON.stringify(each));
      else if (found.length === 0)
        terminal.out(wrapText(await nothingDiffers(engine.triage, filter, headers), terminal.columns));
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

/** The headers are read from at most this many of the events. */
const eventsRead = 20;

/** If no header was compared, the sentence says which headers the events have. */
async function nothingDiffers(
  triage: Triage,
  filter: ParkedFilter,
  compared: readonly string[],
): Promise<string> {
  const says = 'Nothing is different about them.';
  if (compared.length > 0) return says;
  const { items } = await triage.list(filter, { limit: eventsRead });
  const names = new Set<string>();
  for (const { id } of items)
    for (const name of Object.keys((await triage.get(id))?.headers ?? {})) names.add(name);
  if (names.size === 0) return `${says} They have no headers, either.`;
  return `${says} Headers were not compared: --compare <header> does that; there are ${[...names].sort().join(', ')}.`;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
