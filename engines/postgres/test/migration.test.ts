import { systemClock } from 'holdfast';
import { afterAll, describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { Database } from '../src/database.ts';
import { migrate } from '../src/migrate.ts';
import { migrations } from '../src/schema/migrations.ts';
import { newGround } from './postgres-harness.ts';

const postgres = await service('postgres');

/** What a store of version 1 can have in it. */
const oldRows = `
INSERT INTO parked (id, status, parked_at, parkings, removed_at, operation, topic, first_seen_at, bytes_are_text, origin, body, reason, message, stop, final_attempt, fingerprint, story, discarded)
  SELECT 'event-' || n, CASE WHEN n = 3 THEN 'discarded' ELSE 'parked' END, 1000 + n, 1, 9999999999999, CASE WHEN n = 4 THEN 'replay-1' END,
    'orders', 1, false, 'orders', '{}', 'TypeError', 'no street', 'attempts_exhausted', 6, 'print-' || n % 2, '[]',
    CASE WHEN n = 3 THEN '{"who":"ada","why":"twice"}' END FROM generate_series(1, 5) AS g(n);
INSERT INTO replay (id, request, who, why, stage, started_at, selected, memo) VALUES
  ('replay-1', '{"filter":{"topic":"orders"},"rate":50,"canary":0,"canaryMs":0,"outstandingMax":500,"stopAbove":0.5}', 'ada', 'fixed', 'releasing', 2000, 1,
   '{"paidUntil":0,"canarySince":0,"judged":{"succeeded":0,"failedAgain":0}}');
INSERT INTO control (id, topic, control, kind, who, why, since) VALUES ('pause:orders', 'orders', '{"kind":"pause","topic":"orders"}', 'pause', 'ada', 'why', 5);
INSERT INTO audit (id, at, what, subjects, count, who, why) VALUES ('a-1', 1, 'discard', '{event-3}', 1, 'ada', 'twice'),
  ('a-2', 2, 'replay_stopped', '{replay-0}', 1, 'ada', 'late'), ('a-3', 3, 'rule_set', '{nightly}', 1, 'bob', 'often');
`;

describe.skipIf(postgres.missing)(titled('a store of version 1', postgres), () => {
  const ground = newGround(postgres.missing === undefined ? postgres.url : '');
  afterAll(() => ground.clear());

  test('is brought up to date with everything in it', async () => {
    const { schema, admin } = ground;
    const database = new Database(ground.pool, schema, systemClock);
    await migrate(database, schema, [migrations[0]!]);
    await admin.query(`BEGIN; SET LOCAL search_path TO ${schema}; ${oldRows} COMMIT`);

    const { triage, audit, controls } = await ground.open();

    expect(await triage.count({})).toBe(4);
    expect(await triage.count({ topic: 'orders', status: ['parked', 'discarded'] })).toBe(5);
    const { items: groups } = await triage.groups({}, { limit: 5 });
    expect(groups).toMatchObject([
      { fingerprint: 'print-0', count: 2, firstAt: 1002, lastAt: 1004, topics: ['orders'] },
      { fingerprint: 'print-1', count: 2, firstAt: 1001, lastAt: 1005 },
    ]);
    expect(await triage.get('event-3')).toMatchObject({
      ...{ version: 1, earlier: [], replayedBy: undefined },
      discarded: { who: 'ada', why: 'twice', at: 1003 },
    });
    const begun = (await triage.operations.list({ unfinished: true }, { limit: 5 })).items;
    expect(begun).toMatchObject([
      { id: 'replay-1', request: { kind: 'replay', rate: 50 }, counts: { selected: 1, changed: 0 } },
    ]);
    const published: string[] = [];
    await triage.operations.release('replay-1', 10, async (_, events) => {
      published.push(...events.map(({ id }) => id!));
    });
    expect(published).toEqual(['event-4']);
    expect(await triage.count({ status: 'replaying' })).toBe(1);

    const about = async (subject: `event:${string}` | `operation:${string}` | `rule:${string}`) =>
      (await audit.list({ subject }, { limit: 5 })).items;
    expect(await about('event:event-3')).toMatchObject([{ id: 'a-1', what: 'discard', who: 'ada' }]);
    expect(await about('operation:replay-0')).toMatchObject([{ what: 'operation_stopped' }]);
    expect(await about('rule:nightly')).toMatchObject([{ who: 'bob', undoneBy: undefined }]);
    const { version, controls: active } = await controls.active();
    expect(active).toMatchObject([{ id: 'pause:orders', version }]);
  });
});
