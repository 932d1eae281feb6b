import { isEmptyFilter, type OneOf, type ParkedFilter, type ParkedStatus } from '@holdfast/contracts';
import { consumersOf, fleetState } from '@holdfast/events';
import { stopReasons } from 'holdfast';
import { type Flag, type Given, UsageError } from './command.ts';
import { didYouMean } from './did-you-mean.ts';
import { momentOf, textOf } from './given-values.ts';
import { eventIds, groupFingerprint, operationId, parkedStatuses } from './parked-ids.ts';
import type { OpenStore } from './store.ts';
import { unknownTopic } from './topics.ts';

const properties = {
  topic: 'topic',
  type: 'type',
  key: 'key',
  tenant: 'tenant',
  reason: 'reason',
  stop: 'stop',
  group: 'fingerprint',
  consumer: 'consumer',
} as const;
type PropertyFlag = keyof typeof properties;
const propertyFlags = Object.keys(properties) as PropertyFlag[];

/** If a flag is given several times, an event must match one of its values. */
export const filterFlags: Readonly<Record<string, Flag>> = {
  topic: { value: 'name', many: true, says: 'of this topic' },
  type: { value: 'type', many: true, says: 'of this type of event' },
  key: { value: 'key', many: true, says: 'with this key' },
  tenant: { value: 'tenant', many: true, says: 'of this tenant' },
  reason: { value: 'type', many: true, says: 'whose error is of this type' },
  stop: { value: 'reason', many: true, says: 'that stopped for this reason: attempts_exhausted, poison, …' },
  group: { value: 'fingerprint', many: true, says: 'of this group (see "holdfast dlq groups")' },
  consumer: { value: 'name', many: true, says: 'that this consumer has parked' },
  header: { value: 'name=value', many: true, says: 'with this header' },
  not: { value: 'name=value', many: true, says: 'without this one: tenant=acme, header.region=eu' },
  text: { value: 'text', says: 'with this in message, key or payload' },
  'replayed-by': { value: 'replay', says: 'that this replay has published again' },
  since: { value: 'date or age', says: 'parked since: 2026-01-31, or 2h' },
  until: { value: 'date or age', says: 'parked before' },
};

export const statusFlag: Readonly<Record<'status', Flag>> = {
  status: { value: 'status', many: true, says: `${parkedStatuses.join(', ')}; parked unless given` },
};

/** The user selects events by ids or by a filter, or selects all of them. */
export const chooseFlags: Readonly<Record<string, Flag>> = {
  ...filterFlags,
  all: { says: 'everything that is parked' },
  'dry-run': { says: 'only say how many it would be' },
};

/**
 * Throws a `UsageError` for an unknown topic, stop reason or consumer. `isOfFuture`: the filter is for events
 * that are parked later, so any stop reason and consumer is allowed.
 */
export async function filterOf(given: Given, engine: OpenStore, isOfFuture = false): Promise<ParkedFilter> {
  const { triage } = engine;
  const values: Partial<Record<PropertyFlag, string[]>> = {};
  for (const flag of propertyFlags) {
    for (const value of given.lists[flag] ?? []) {
      if (!isOfFuture && (flag === 'stop' || flag === 'consumer')) await assertKnown(flag, value, engine);
      await add(values, flag, value, engine);
    }
  }
  const replay = textOf(given, 'replayed-by');
  const fields: ParkedFilter = {
    ...named(values),
    ...headersIn(given.lists.header ?? [], 'header'),
    ...(await excluded(given.lists.not ?? [], engine)),
    status: statusIn(given),
    text: textOf(given, 'text'),
    replayedBy: replay === undefined ? undefined : await operationId(triage, replay),
    from: momentOf(given, 'since'),
    to: momentOf(given, 'until'),
  } as ParkedFilter;
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * Returns the filter of the events that the user selected. Throws a `UsageError` unless the user gives
 * exactly one of these: ids, a filter, or `--all`.
 */
export async function chosenFilter(given: Given, engine: OpenStore): Promise<ParkedFilter> {
  const { operands: ids, flags } = given;
  const filter = await filterOf(given, engine);
  if (ids.length > 0) {
    if (!isEmptyFilter(filter) || flags.all)
      throw new UsageError('say ids, or a filter, or --all: not several of them.');
    return { ids: await eventIds(engine.triage, ids, flags.undo ? 'discarded' : 'parked') };
  }
  if (!isEmptyFilter(filter)) {
    if (flags.all) throw new UsageError('say a filter, or --all: not both.');
    return filter;
  }
  if (!flags.all) throw new UsageError('which events? Say ids, a filter such as --topic, or --all.');
  return { ...filter, from: 0 };
}

function statusIn(given: Given): OneOf<ParkedStatus> | undefined {
  const wanted = (given.lists.status ?? []) as ParkedStatus[];
  for (const status of wanted) {
    if (parkedStatuses.includes(status)) continue;
    const meant = didYouMean(status, parkedStatuses).replace('; did', '. Did') || '.';
    throw new UsageError(`--status: expected one of ${parkedStatuses.join(', ')}, got "${status}"${meant}`);
  }
  return oneOf(wanted);
}

async function excluded(given: readonly string[], engine: OpenStore): Promise<ParkedFilter> {
  if (given.length === 0) return {};
  const values: Partial<Record<PropertyFlag, string[]>> = {};
  const headers: string[] = [];
  for (const each of given) {
    const [name, value] = pair(each, 'not');
    if (name.startsWith('header.')) headers.push(`${name.slice('header.'.length)}=${value}`);
    else if (propertyFlags.includes(name as PropertyFlag))
      await add(values, name as PropertyFlag, value, engine);
    else
      throw new UsageError(
        `--not: expected one of ${propertyFlags.join(', ')} or header.<name>, got "${name}".`,
      );
  }
  return { not: { ...named(values), ...headersIn(headers, 'not') } };
}

async function add(
  values: Partial<Record<PropertyFlag, string[]>>,
  flag: PropertyFlag,
  value: string,
  engine: OpenStore,
): Promise<void> {
  if (flag === 'topic') await assertTopicOfParked(value, engine);
  const whole = flag === 'group' ? await groupFingerprint(engine.triage, value) : value;
  values[flag] = [...(values[flag] ?? []), whole];
}

/** Throws a `UsageError` if the topic does not exist and no parked event has it. */
async function assertTopicOfParked(topic: string, { broker, triage }: OpenStore): Promise<void> {
  const topics = await broker.topics();
  if (topics.includes(topic) || (await triage.count({ topic, status: parkedStatuses })) > 0) return;
  throw unknownTopic(topic, topics);
}

/**
 * Throws a `UsageError` for an unknown stop reason or consumer. Handlers can park events for reasons of their
 * own, so the reasons of all parked events are known, too.
 */
async function assertKnown(flag: 'stop' | 'consumer', value: string, engine: OpenStore): Promise<void> {
  const { items } = await engine.triage.breakdown({ status: parkedStatuses }, flag, valuesMax);
  const seen = items.flatMap((item) => item.value ?? []);
  if (seen.includes(value)) return;
  const others =
    flag === 'stop'
      ? [...stopReasons, 'skipped']
      : consumersOf((await fleetState(engine)).processes).map(({ name }) => name);
  if (others.includes(value) || items.length === valuesMax) return;
  const what = flag === 'stop' ? 'stopped for' : 'was parked by';
  const meant = didYouMean(value, [...seen, ...others]);
  const known = seen.length === 0 ? '.' : `; there are: ${seen.join(', ')}.`;
  throw new UsageError(`--${flag}: no event here ${what} "${value}"${meant || known}`);
}

/** At most this many values are read. If the store has more, an unknown value is accepted. */
const valuesMax = 100;

function named(values: Partial<Record<PropertyFlag, string[]>>): Record<string, OneOf> {
  return Object.fromEntries(
    propertyFlags.flatMap((flag) => (values[flag] ? [[properties[flag], oneOf(values[flag])!]] : [])),
  );
}

function headersIn(given: readonly string[], flag: string): { headers?: Record<string, OneOf> } {
  if (given.length === 0) return {};
  const headers: Record<string, string[]> = {};
  for (const each of given) {
    const [name, value] = pair(each, flag);
    headers[name] = [...(headers[name] ?? []), value];
  }
  return {
    headers: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, oneOf(values)!])),
  };
}

export function pair(text: string, flag: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--${flag}: expected name=value, got "${text}".`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function oneOf<T extends string>(values: readonly T[]): OneOf<T> | undefined {
  return values.length > 1 ? values : values[0];
}
