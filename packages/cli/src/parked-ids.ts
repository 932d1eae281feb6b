import type { OneOf, Page, PageRequest, ParkedStatus, Triage } from '@holdfast/contracts';
import { UsageError } from './command.ts';
import { wholeId } from './short-ids.ts';

export const parkedStatuses: readonly ParkedStatus[] = ['parked', 'replaying', 'resolved', 'discarded'];

/**
 * Returns the whole ids of events. The user may have shortened them. An unknown id is returned unchanged. If
 * a part fits several events, those with the status `preferred` are meant.
 */
export async function eventIds(
  triage: Triage,
  given: readonly string[],
  preferred: ParkedStatus = 'parked',
): Promise<string[]> {
  const others = parkedStatuses.filter((status) => status !== preferred);
  const found: string[] = [];
  for (const id of given) {
    const isWhole = (await triage.get(id)) !== undefined;
    const whole = isWhole
      ? id
      : ((await wholeId('events', id, idsWith(triage, preferred))) ??
        (await wholeId('events', id, idsWith(triage, others))));
    found.push(whole ?? id);
  }
  return found;
}

/** Returns the whole fingerprint of a group. The user may have shortened it. */
export async function groupFingerprint(triage: Triage, given: string): Promise<string> {
  const all = idsIn(
    allPages((page) => triage.groups({ status: parkedStatuses }, page)),
    'fingerprint',
  );
  const found = await wholeId('groups', given, all);
  if (found === undefined) throw new UsageError(`--group: there is no group "${given}" here.`);
  return found;
}

/**
 * Returns the whole id of an operation (a replay, discard, restore, keep or undo). The user may have
 * shortened it.
 */
export async function operationId(triage: Triage, given: string): Promise<string> {
  const found = await tryOperationId(triage, given);
  if (found === undefined) throw new UsageError(`there is no replay "${given}" here.`);
  return found;
}

/** Like `operationId`, but returns undefined if there is no such operation. */
export async function tryOperationId(triage: Triage, given: string): Promise<string | undefined> {
  if (await triage.operations.get(given)) return given;
  const all = idsIn(
    allPages((page) => triage.operations.list({}, page)),
    'id',
  );
  return wholeId('operations', given, all);
}

function idsWith(triage: Triage, status: OneOf<ParkedStatus>): AsyncIterable<readonly string[]> {
  return idsIn(
    allPages((page) => triage.list({ status }, page)),
    'id',
  );
}

export async function* idsIn<N extends string>(
  pages: AsyncIterable<readonly Readonly<Record<N, string>>[]>,
  name: N,
): AsyncIterable<readonly string[]> {
  for await (const items of pages) yield items.map((item) => item[name]);
}

export async function* allPages<T>(
  read: (page: PageRequest) => Promise<Page<T>>,
): AsyncIterable<readonly T[]> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: 1000, ...(cursor !== undefined && { cursor }) });
    yield page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
