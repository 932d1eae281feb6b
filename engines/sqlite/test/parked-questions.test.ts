import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Engine, NewlyParked, ParkedFilter } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { type VirtualClock, virtualClock } from 'holdfast/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const act = { who: 'ada', why: 'a test' };
const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-parked-'));
const clock: VirtualClock = virtualClock();
let sqlite: SqliteEngine;
let memory: Required<Engine>;

/** More events than one step of a search reads, and more groups than it reads apart. */
const eventCount = 7000;

function event(index: number): NewlyParked {
  const id = `event-${String((index * 7919) % eventCount).padStart(6, '0')}`;
  const print = `f${index % 13}`;
  return {
    ...{ id, topic: `topic ${index % 7}`, payload: `{"n":${index}}`, type: undefined, key: `k${index % 11}` },
    ...{ tenant: index % 5 === 0 ? undefined : `tenant ${index % 5}` },
    headers: index % 3 === 0 ? {} : { 'a"b': `r${index % 3}`, '$.x': 'path' },
    ...{ correlationId: id, idempotencyKey: id, originTopic: 'orders', firstSeenAt: 0 },
    ...{ expiresAt: undefined, replay: undefined },
    diagnosis: {
      ...{ reason: 'Error', message: `no ${index}`, stop: 'poison', finalAttempt: 1, story: [] },
      consumer: index % 2 === 0 ? 'mailer' : undefined,
      error: { type: 'Error', message: `no ${index}`, fingerprint: print },
    },
  };
}

beforeAll(async () => {
  sqlite = await openSqlite({ file: path.join(folder, 'events.db'), clock });
  memory = memoryEngine({ clock, parkedMax: eventCount });
  for (let index = 0; index < eventCount; index += 500) {
    const events = Array.from({ length: 500 }, (_, at) => event(index + at));
    for (const { triage } of [sqlite, memory]) await triage.put(events);
    await clock.advance(10);
  }
  for (const { triage } of [sqlite, memory]) {
    const { id } = await triage.operations.begin({ kind: 'discard', filter: { key: 'k3' } }, act);
    while ((await triage.operations.apply(id, 1000)) > 0);
  }
}, 60_000);

afterAll(async () => {
  await sqlite.close();
  rmSync(folder, { recursive: true });
});

const start = clock.epochMs();
const filters: readonly ParkedFilter[] = [
  {},
  { topic: 'topic 3' },
  { topic: ['topic 3', 'topic 4'], status: ['discarded', 'parked'] },
  { fingerprint: 'f3' },
  { fingerprint: ['f3', 'f4', 'no such'], topic: 'topic 2', status: 'discarded' },
  { fingerprint: 'no such' },
  { status: ['parked', 'discarded', 'resolved'], tenant: ['tenant 1', 'tenant 2'] },
  { not: { tenant: 'tenant 1', topic: ['topic 1', 'topic 2'] } },
  { not: { headers: { 'a"b': 'r1' } }, topic: 'topic 5' },
  { headers: { 'a"b': ['r2', 'r9'], '$.x': 'path' } },
  { consumer: 'mailer', not: { consumer: 'other' }, from: start + 20, to: start + 150 },
  { text: 'NO 69', from: start + 30 },
  { ids: [event(3).id, event(700).id, 'unknown'], status: ['parked', 'discarded'] },
  { from: start + 50, to: start + 50 },
];

describe.each(filters)('of %j', (filter) => {
  test('the list is the same as in memory', async () => {
    const pages = async ({ triage }: Pick<Required<Engine>, 'triage'>) => {
      const ids: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await triage.list(filter, { limit: 3000, ...(cursor && { cursor }) });
        ids.push(...page.items.map(({ id }) => id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return ids;
    };
    expect(await pages(sqlite)).toEqual(await pages(memory));
  });

  test('the counts are the same as in memory', async () => {
    const [given, expected] = await Promise.all(
      [sqlite, memory].map(async ({ triage }) => {
        const first = await triage.groups(filter, { limit: 5 });
        const next = first.cursor && (await triage.groups(filter, { limit: 50, cursor: first.cursor }));
        const groups = [...first.items, ...(next ? next.items : [])];
        const topics = await triage.breakdown(filter, 'topic', 3);
        return {
          count: await triage.count(filter),
          groups: groups.map((group) => ({ ...group, topics: group.topics.toSorted() })),
          topics: [topics.items.map(({ count }) => count), topics.others],
          headers: (await triage.breakdown(filter, { header: 'a"b' }, 10)).items,
          consumers: (await triage.breakdown(filter, 'consumer', 10)).items.map(({ count }) => count),
          histogram: await triage.histogram(filter, 7),
        };
      }),
    );
    const byCount = (items: readonly { value: string | undefined; count: number }[]) =>
      items.toSorted((a, b) => b.count - a.count || ((a.value ?? '') < (b.value ?? '') ? -1 : 1));
    expect({ ...given, headers: byCount(given!.headers) }).toEqual({
      ...expected,
      headers: byCount(expected!.headers),
    });
  });
});

test('a search stops after so many events, and goes on where it stopped', async () => {
  const filter = { text: 'no 7' };
  const found: string[] = [];
  let looked = 0;
  let cursor: string | undefined;
  do {
    const page = await sqlite.triage.list(filter, { limit: 100, lookMax: 700, ...(cursor && { cursor }) });
    found.push(...page.items.map(({ id }) => id));
    looked += page.looked ?? 0;
    cursor = page.cursor;
  } while (cursor !== undefined);
  const all = await sqlite.triage.list(filter, { limit: eventCount });
  expect(found).toEqual(all.items.map(({ id }) => id));
  expect(looked).toBeGreaterThan(0);
  expect(looked).toBeLessThanOrEqual(eventCount);
});

test('a histogram has at most its latest 500 buckets', async () => {
  const triage = sqlite.triage;
  for (let index = 0; index < 600; index++) {
    await triage.put([{ ...event(0), id: `late ${index}`, topic: 'late' }]);
    await clock.advance(1);
  }
  const buckets = await triage.histogram({ topic: 'late' }, 1);
  expect(buckets).toHaveLength(500);
  expect(buckets.at(-1)).toEqual({ at: clock.epochMs() - 1, count: 1 });
});
