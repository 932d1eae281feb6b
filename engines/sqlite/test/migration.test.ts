import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqlite } from '@holdfast/sqlite';
import { afterEach, expect, test } from 'vitest';
import { migrate, schemaSteps } from '../src/schema.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A file as schema version 2 left it, with rows that its code wrote. */
async function openOldFile(insert: (database: DatabaseSync) => void) {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-migration-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'events.db');
  const database = new DatabaseSync(file);
  migrate(database, schemaSteps.slice(0, 2));
  insert(database);
  database.close();
  const engine = await openSqlite({ file });
  cleanups.push(() => engine.close());
  return engine;
}

/** The columns that differ between the events of these tests. */
function insertParked(database: DatabaseSync, row: Record<string, string | number | null>): void {
  const given = {
    ...{ operation: null, replay: null, discarded: null, parked_at: 5, removed_at: 2 ** 50, parkings: 1 },
    ...{
      topic: 'orders',
      reason: 'Error',
      message: 'no',
      stop: 'poison',
      fingerprint: 'f',
      final_attempt: 3,
    },
    ...{ is_edited: 0, headers: '{"region":"eu"}', correlation_id: 'c', idempotency_key: 'i' },
    ...{ origin_topic: 'orders', first_seen_at: 1, story: '[]', edits: '[]', payload: 'p', ...row },
  };
  const names = Object.keys(given);
  const sql = `INSERT INTO holdfast_parked (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
  database.prepare(sql).run(...Object.values(given));
}

test('parked events of an older release keep what they have, and are counted', async () => {
  const { triage } = await openOldFile((database) => {
    insertParked(database, {
      id: 'a',
      status: 'parked',
      edits: '[{"who":"ada","why":"b","at":1,"changes":[]}]',
    });
    insertParked(database, { id: 'b', status: 'parked', topic: 'mails', parked_at: 6 });
    insertParked(database, { id: 'c', status: 'discarded', discarded: '{"who":"ada","why":"old"}' });
    insertParked(database, { id: 'd', status: 'replaying', operation: 'r2', replay: 'r1' });
    insertParked(database, { id: 'e', status: 'parked', replay: 'r1', parkings: 2, fingerprint: 'g' });
  });
  expect(await triage.get('a')).toMatchObject({
    ...{ payload: 'p', headers: { region: 'eu' }, version: 1, earlier: [], replayedBy: undefined },
    edits: [{ who: 'ada', why: 'b', at: 1, changes: [] }],
  });
  expect(await triage.get('c')).toMatchObject({ discarded: { who: 'ada', why: 'old', at: 5 } });
  expect(await triage.get('d')).toMatchObject({ operation: 'r2', replayedBy: 'r2' });
  expect(await triage.get('e')).toMatchObject({ operation: undefined, replayedBy: 'r1' });
  expect(await triage.count({})).toBe(3);
  expect(await triage.count({ status: ['parked', 'discarded', 'replaying'] })).toBe(5);
  expect((await triage.groups({}, { limit: 10 })).items).toMatchObject([
    { fingerprint: 'f', count: 2, firstAt: 5, lastAt: 6, topics: ['mails', 'orders'] },
    { fingerprint: 'g', count: 1 },
  ]);
});

test('a replay of an older release goes on', async () => {
  const request = {
    filter: { topic: 'orders' },
    rate: 1,
    canary: 0,
    canaryMs: 0,
    outstandingMax: 1,
    stopAbove: 1,
  };
  const { triage } = await openOldFile((database) => {
    insertParked(database, { id: 'a', status: 'parked' });
    const memo = '{"paidUntil":0,"canarySince":0,"judged":{"succeeded":0,"failedAgain":0}}';
    database
      .prepare(`
        INSERT INTO holdfast_operation (id, request, who, why, stage, version, started_at, memo, selects_to)
        VALUES ('r1', ?, 'ada', 'fixed', 'selecting', 1, 9, ?, 9)`)
      .run(JSON.stringify(request), memo);
  });
  expect(await triage.operations.get('r1')).toMatchObject({ request: { ...request, kind: 'replay' } });
  const { items } = await triage.operations.list({ kind: 'replay', unfinished: true }, { limit: 10 });
  expect(items).toMatchObject([{ id: 'r1', act: { who: 'ada', why: 'fixed' }, counts: { changed: 0 } }]);
  expect(await triage.operations.select('r1', 10)).toBe(1);
});

test('audit entries of an older release are found by their subjects', async () => {
  const { audit } = await openOldFile((database) => {
    const add = database.prepare(`
      INSERT INTO holdfast_audit (id, at, what, who, why, subjects, count) VALUES (?, 1, ?, 'ada', 'b', ?, 2)`);
    add.run('1', 'discard', '["a","b"]');
    add.run('2', 'replay_stopped', '["r1"]');
    add.run('3', 'rule_set', '["known"]');
  });
  expect((await audit.list({ subject: 'event:b' }, { limit: 10 })).items).toEqual([
    {
      ...{
        id: '1',
        at: 1,
        what: 'discard',
        who: 'ada',
        why: 'b',
        subjects: ['event:a', 'event:b'],
        count: 2,
      },
      ...{ before: undefined, undoneBy: undefined },
    },
  ]);
  expect((await audit.list({ subject: 'operation:r1' }, { limit: 10 })).items).toMatchObject([
    { what: 'operation_stopped' },
  ]);
  expect((await audit.list({ subject: 'rule:known' }, { limit: 10 })).items).toMatchObject([{ id: '3' }]);
});

test('controls of an older release still apply', async () => {
  const { controls } = await openOldFile((database) => {
    database.exec(`
      INSERT INTO holdfast_control VALUES ('pause:a', '{"kind":"pause","topic":"a"}', 'ada', 'b', 1, NULL);
      UPDATE holdfast_meta SET controls_version = 2`);
  });
  const { version, controls: active } = await controls.active();
  expect(version).toBe(2);
  expect(active).toEqual([
    {
      ...{ id: 'pause:a', control: { kind: 'pause', topic: 'a' }, act: { who: 'ada', why: 'b' } },
      ...{ since: 1, until: undefined, version: 1 },
    },
  ]);
});
