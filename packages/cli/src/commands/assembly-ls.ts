import { type AssemblyFilter, assemblyStates, type Journal, type StoredAssembly } from '@holdfast/contracts';
import { assemblyGroup, withAssemblies } from '../assembly-ids.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { countOf, textOf } from '../given-values.ts';
import { cursorOf, pasteable } from '../page-cursor.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag } from '../store.ts';
import { bad } from '../styled-text.ts';
import { table } from '../table.ts';
import { oneLine, wrapText } from '../text-width.ts';
import { ago, spanLeft } from '../times.ts';

/** The list cuts notes to this many characters; "assembly show" prints them whole. */
const noteMax = 120;

export const assemblyLs: Command = {
  name: 'assembly ls',
  summary: 'assemblies, the latest first',
  flags: {
    ...storeFlag,
    state: { value: 'state', says: `only these: ${assemblyStates.join(', ')}` },
    name: { value: 'program', says: 'only those of this program' },
    version: { value: 'number', says: 'only those of this version' },
    tenant: { value: 'tenant', says: 'only those of this tenant' },
    key: { value: 'key', says: 'only those with this key' },
    queue: { value: 'queue', says: 'only those of this queue' },
    group: { value: 'fingerprint', says: 'only those that are parked with this error' },
    limit: { value: 'count', says: 'at most so many; 20 unless given' },
    cursor: { value: 'cursor', says: 'the page after this one' },
  },
  examples: [
    'assembly ls --state parked',
    'assembly ls --name place-order --version 2 --tenant acme',
    'assembly ls --state parked --group 4f1d9ac0 --json',
  ],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async ({ journal }) => {
      const cursor = cursorOf(given);
      const page = { limit: countOf(given, 'limit', 1) ?? 20, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await journal.list(await filterOf(given, journal), page);
      if (given.flags.json) {
        for (const item of items) terminal.out(JSON.stringify(item));
        // The hint goes to standard error, because standard output is only for JSON.
        if (next !== undefined) terminal.err(`holdfast: there are more, with --cursor ${pasteable(next)}`);
        return 0;
      }
      if (items.length === 0) {
        terminal.out('There are no such assemblies.');
        return 0;
      }
      const now = await journal.now();
      const short = shortNames(
        items.map(({ id }) => id),
        terminal,
      );
      const rows = items.map((item) => [
        ...[short(item.id), `${item.name}@${item.version}`, stateOf(item), item.tenant ?? ''],
        ...[ago(item.acceptedAt, now, terminal), nextOf(item, now)],
        bad(oneLine(item.parked?.message ?? item.stop?.message ?? '', noteMax)),
      ]);
      const headings = [
        { heading: 'ID', whole: true },
        ...['PROGRAM', 'STATE', 'TENANT'],
        { heading: 'ACCEPTED', whole: true },
        { heading: 'DUE', whole: true },
        { heading: 'WHY', below: true },
      ] as const;
      terminal.out(table(headings, rows, terminal.columns));
      if (next !== undefined)
        terminal.out(`\n${wrapText(`more with --cursor ${pasteable(next)}`, terminal.columns, 2)}`);
      return 0;
    }),
};

async function filterOf(given: Given, journal: Journal): Promise<AssemblyFilter> {
  const state = textOf(given, 'state');
  const known = assemblyStates.find((each) => each === state);
  if (state !== undefined && known === undefined)
    throw new UsageError(
      `--state: expected one of ${assemblyStates.join(', ')}, got "${state}".${didYouMean(state, assemblyStates, '')}`,
    );
  const version = countOf(given, 'version', 0);
  const texts = { name: 'name', tenant: 'tenant', key: 'key', queue: 'queue' } as const;
  const group = textOf(given, 'group');
  const filter = Object.entries(texts).flatMap(([field, flag]) => {
    const text = textOf(given, flag);
    return text === undefined ? [] : [[field, text]];
  });
  return {
    ...Object.fromEntries(filter),
    ...(group !== undefined && { fingerprint: await assemblyGroup(group, journal) }),
    ...(version !== undefined && { version }),
    ...(known !== undefined && { state: known }),
  };
}

function stateOf({ state, stop }: StoredAssembly): string {
  return stop && state !== 'stopped' ? `${state}, stopping` : state;
}

function nextOf({ dueAt }: StoredAssembly, now: number): string {
  if (dueAt === undefined) return '';
  return dueAt <= now ? 'now' : `in ${spanLeft(dueAt - now)}`;
}
