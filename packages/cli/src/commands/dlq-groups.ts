import { type BreakdownBy, breakdownProperties, type ParkedFilter } from '@holdfast/contracts';
import { type Command, type Given, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { errorLine } from '../error-line.ts';
import { countOf, textOf } from '../given-values.ts';
import { nothingParked } from '../nothing-parked.ts';
import { filterFlags, filterOf, statusFlag } from '../parked-flags.ts';
import { shortNames } from '../short-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { bad, dim } from '../styled-text.ts';
import { table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine } from '../text-width.ts';
import { ago } from '../times.ts';

const properties = breakdownProperties.filter((each) => each !== 'fingerprint');

export const dlqGroups: Command = {
  name: 'dlq groups',
  summary: 'parked events by what a person would call the same error',
  flags: {
    ...storeFlag,
    ...filterFlags,
    ...statusFlag,
    by: { value: 'property', says: `${properties.join(', ')} or header.<name>; error unless given` },
    limit: { value: 'count', says: 'at most so many groups; 20 unless given' },
  },
  examples: ['dlq groups', 'dlq groups --topic orders --since 1h', 'dlq groups --by tenant'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const filter = await filterOf(given, engine);
      const by = propertyOf(given);
      return by === undefined
        ? byError(engine, filter, given, terminal)
        : byProperty(engine, filter, by, given, terminal);
    }),
};

async function byError(
  engine: OpenStore,
  filter: ParkedFilter,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const { triage, controls } = engine;
  const { items } = await triage.groups(filter, { limit: countOf(given, 'limit', 1) ?? 20 });
  if (given.flags.json) for (const item of items) terminal.out(JSON.stringify(item));
  else if (items.length === 0) terminal.out(await nothingParked(engine, filter));
  else {
    const { now } = await controls.active();
    const short = shortNames(
      items.map(({ fingerprint }) => fingerprint),
      terminal,
    );
    const rows = items.map(({ fingerprint, count, firstAt, lastAt, topics, reason, message }) => [
      ...[short(fingerprint), String(count)],
      ...[ago(firstAt, now, terminal), ago(lastAt, now, terminal), topics.join(' ')],
      bad(oneLine(errorLine(reason, message), 120)),
    ]);
    const headings = [
      { heading: 'GROUP', whole: true },
      { heading: 'EVENTS', align: 'right' },
      { heading: 'FIRST PARKED', whole: true },
      { heading: 'LAST PARKED', whole: true },
      'TOPICS',
      { heading: 'ERROR', below: true },
    ] as const;
    terminal.out(table(headings, rows, terminal.columns));
  }
  return 0;
}

async function byProperty(
  engine: OpenStore,
  filter: ParkedFilter,
  by: BreakdownBy,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const { items, others } = await engine.triage.breakdown(filter, by, countOf(given, 'limit', 1) ?? 20);
  if (given.flags.json) {
    for (const item of items) terminal.out(JSON.stringify(item));
    return 0;
  }
  const total = items.reduce((sum, { count }) => sum + count, others);
  if (total === 0) terminal.out(await nothingParked(engine, filter));
  else {
    const rows = items.map(({ value, count }) => [
      value === undefined ? dim('(none)') : value,
      ...[String(count), `${((100 * count) / total).toFixed(1)} %`],
    ]);
    if (others > 0) rows.push([dim('(others)'), String(others), `${((100 * others) / total).toFixed(1)} %`]);
    const name = (typeof by === 'string' ? by : by.header).toUpperCase();
    const headings = [name, ...['EVENTS', 'SHARE'].map((heading) => ({ heading, align: 'right' }) as const)];
    terminal.out(table(headings, rows, terminal.columns));
  }
  return 0;
}

/** Returns the property by which events are grouped. Undefined: events are grouped by error. */
function propertyOf(given: Given): BreakdownBy | undefined {
  const text = textOf(given, 'by');
  if (text === undefined || text === 'error') return undefined;
  if (text.startsWith('header.') && text.length > 'header.'.length)
    return { header: text.slice('header.'.length) };
  const property = properties.find((each) => each === text);
  if (property !== undefined) return property;
  const meant = didYouMean(text, properties).replace('; did', '. Did') || '.';
  throw new UsageError(
    `--by: expected error, ${properties.join(', ')} or header.<name>, got "${text}"${meant}`,
  );
}
