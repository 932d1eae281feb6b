import type { NewlyParked, ParkedFilter } from '@holdfast/contracts';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { newGround } from './postgres-harness.ts';

const postgres = await service('postgres');
const act = { who: 'ada', why: 'a test' };
const statuses = ['parked', 'replaying', 'resolved', 'discarded'] as const;

describe.skipIf(postgres.missing)(titled('questions about parked events', postgres), () => {
  const ground = newGround(postgres.missing === undefined ? postgres.url : '');
  afterAll(() => ground.clear());

  test('kept counts are right when many sessions change events at the same time', async () => {
    const engines = await Promise.all(Array.from({ length: 4 }, () => ground.open({ connectionsMax: 3 })));
    const topics = ['a', 'b'];
    let isRunning = true;
    const folding = (async () => {
      while (isRunning) await engines[0]!.sweep(100);
    })();
    const asking = (async () => {
      while (isRunning) {
        const { items } = await engines[1]!.triage.groups({ topic: topics }, { limit: 10 });
        for (const { count } of items) expect(count).toBeGreaterThan(0);
      }
    })();
    await Promise.all(
      engines.map(async ({ triage }, engine) => {
        for (let round = 0; round < 15; round++) {
          const ids = Array.from({ length: 6 }, (_, n) => `${engine}-${round}-${n}`);
          await triage.put(ids.map((id, n) => parked(id, { topic: topics[n % 2]! }, `print-${n % 3}`)));
          const discard = await triage.operations.begin({ kind: 'discard', filter: { ids } }, act);
          await triage.operations.apply(discard.id, 3);
          const replay = { kind: 'replay', filter: { ids }, rate: 1, canary: 0, canaryMs: 0 } as const;
          const request = { ...replay, outstandingMax: 1, stopAbove: 1 };
          const { id } = await triage.operations.begin(request, act);
          await triage.operations.select(id, 2);
          await triage.operations.release(id, 2, async () => {});
          await triage.resolve([{ id: ids[4]!, operation: id }]);
        }
      }),
    );
    isRunning = false;
    await Promise.all([folding, asking]);

    const { triage } = engines[2]!;
    const filters: ParkedFilter[] = [{}, ...statuses.map((status) => ({ status })), { topic: 'b' }];
    for (const filter of [...filters, { fingerprint: ['print-0', 'print-2'], status: statuses }]) {
      // `from` makes it a question that is answered by a scan.
      const scanned = await triage.count({ ...filter, from: 0 });
      expect(await triage.count(filter), JSON.stringify(filter)).toBe(scanned);
      const page = { limit: 10 };
      const groups = (await triage.groups({ ...filter, from: 0 }, page)).items;
      expect((await triage.groups(filter, page)).items).toEqual(
        groups.map((group) => ({ ...group, topics: group.topics.toSorted() })),
      );
    }
    const all = await triage.breakdown({ status: statuses }, 'status', 4);
    expect(all.items.reduce((sum, { count }) => sum + count, 0)).toBe(4 * 15 * 6);
    const left = async () => {
      // The questions before let their process fold in the background, and only one process folds at a time.
      await engines[0]!.sweep(100);
      const { rows } = await ground.admin.query(
        `SELECT count(*)::int AS deltas, (SELECT count(*)::int FROM ${ground.schema}.parked_count WHERE count <= 0) AS empty
         FROM ${ground.schema}.parked_count_delta`,
      );
      return rows;
    };
    await expect.poll(left).toEqual([{ deltas: 0, empty: 0 }]);
  });

  test.each([[{ topic: 'orders' }], [{}]])(
    'the groups of %j are read without reading their events',
    async (filter) => {
      const own = newGround(postgres.missing === undefined ? postgres.url : '');
      onTestFinished(() => own.clear());
      const { triage } = await own.open();
      for (let from = 0; from < 6000; from += 1000) {
        const ids = Array.from({ length: 1000 }, (_, n) => `event-${from + n}`);
        await triage.put(ids.map((id, n) => parked(id, { topic: 'orders' }, `print-${n % 4}`)));
      }
      const topics = 'topic' in filter ? `'{${filter.topic}}'` : 'NULL';
      const client = await own.admin.connect();
      onTestFinished(() => client.release());
      await client.query('BEGIN');
      const groups = await client.query(
        `SELECT count::int FROM ${own.schema}.parked_groups('{parked}', ${topics}, NULL, NULL, NULL, 10)`,
      );
      const { rows } = await client.query(
        `SELECT (idx_tup_fetch + seq_tup_read)::int AS read FROM pg_stat_xact_user_tables
         WHERE schemaname = '${own.schema}' AND relname = 'parked'`,
      );
      await client.query('COMMIT');
      expect(groups.rows.map(({ count }) => count)).toEqual([1500, 1500, 1500, 1500]);
      // Of each group, 250 events are the last ones: they were parked in the same millisecond.
      expect(rows[0].read).toBeLessThan(5000);
    },
  );

  test('finds headers whatever signs are in them', async () => {
    const { triage } = await ground.open();
    const texts = [
      'plain',
      'a\0b',
      '\ud800',
      '\\u0000',
      '\\',
      '"quoted"',
      'tab\tline\n',
      'größe',
      '\u0001',
      '',
    ];
    const topic = 'headers';
    await triage.put(
      texts.map((text, n) => parked(`header-${n}`, { topic, headers: { [`n ${text}`]: 'x', value: text } })),
    );
    await triage.put([parked('header-none', { topic })]);
    for (const [n, text] of texts.entries()) {
      const found = async (headers: ParkedFilter['headers']) =>
        (await triage.list({ topic, headers: headers! }, { limit: 20 })).items.map(({ id }) => id);
      expect(await found({ value: text })).toEqual([`header-${n}`]);
      expect(await found({ value: ['no', text], [`n ${text}`]: 'x' })).toEqual([`header-${n}`]);
      expect(await found({ value: [] })).toEqual([]);
      expect(await triage.count({ topic, not: { headers: { value: text } } })).toBe(texts.length);
    }
    const { items } = await triage.breakdown({ topic }, { header: 'value' }, 20);
    const values = items.map(({ value }) => value);
    expect(values.toSorted()).toEqual([...texts, undefined].toSorted());
  });

  test('a search that stops goes on where it stopped, over several statuses', async () => {
    const { triage } = await ground.open();
    const topic = 'search';
    const ids = Array.from({ length: 25 }, (_, n) => `search-${String(n).padStart(2, '0')}`);
    for (const id of ids)
      await triage.put([parked(id, { topic, payload: id.endsWith('3') ? 'needle' : 'hay' })]);
    const discard = { kind: 'discard', filter: { ids: ids.filter((_, n) => n % 2 === 0) } } as const;
    const { id } = await triage.operations.begin(discard, act);
    await triage.operations.apply(id, 100);

    const found: string[] = [];
    const looked: (number | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const page = { limit: 2, lookMax: 10, ...(cursor !== undefined && { cursor }) };
      const filter = { topic, status: ['parked', 'discarded'], text: 'NEEDLE' } as const;
      const answer = await triage.list(filter, page);
      found.push(...answer.items.map((item) => item.id));
      looked.push(answer.looked);
      cursor = answer.cursor;
    } while (cursor !== undefined);

    expect(found).toEqual(['search-23', 'search-13', 'search-03']);
    expect(looked).toEqual([10, 10, undefined]);
  });

  test('of a queue in an order by due time reads only what it shows', async () => {
    const { broker } = await ground.open();
    await broker.declare('due', { ordering: 'key' });
    const events = [300, 100, 200, 0].map((s) => ({ payload: String(s), key: `k${s}`, delayMs: s * 1000 }));
    await broker.publish('due', [...events, { payload: 'behind', key: 'k100', tenant: 't' }]);
    const question = { order: 'due', state: ['delayed', 'behind'] } as const;
    const shown: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = { limit: 1, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await broker.waiting('due', page, question);
      shown.push(...items.map(({ key, state }) => [key, state]));
      cursor = next;
    } while (cursor !== undefined);
    expect(shown).toEqual([
      ['k100', 'behind'],
      ['k100', 'delayed'],
      ['k200', 'delayed'],
      ['k300', 'delayed'],
    ]);
    expect(await broker.due('due', [0, 150_000])).toEqual([2, 1, 2]);
    expect(await broker.due('due', [])).toEqual([5]);
    await expect(broker.waiting('due', { limit: 1, cursor: '5' }, question)).rejects.toThrow('cursor');
  });
});

function parked(id: string, rest: Partial<NewlyParked> = {}, fingerprint = 'print'): NewlyParked {
  return {
    ...{
      id,
      topic: 'orders',
      payload: '{}',
      type: undefined,
      key: undefined,
      tenant: undefined,
      headers: {},
    },
    ...{ correlationId: id, idempotencyKey: id, originTopic: 'orders', firstSeenAt: 1, expiresAt: undefined },
    replay: undefined,
    diagnosis: {
      ...{ reason: 'TypeError', message: 'no street', stop: 'attempts_exhausted', finalAttempt: 6 },
      ...{ consumer: 'shipping', story: [] },
      error: { type: 'TypeError', message: 'no street', fingerprint },
    },
    ...rest,
  } as NewlyParked;
}
