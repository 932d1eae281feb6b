import net from 'node:net';
import { openPostgres, type PostgresWarning } from '@holdfast/postgres';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { Database, type PostgresPool } from '../src/database.ts';
import { migrate } from '../src/migrate.ts';
import { toPostgresError } from '../src/postgres-errors.ts';
import { migrations } from '../src/schema/migrations.ts';
import { newGround } from './postgres-harness.ts';

const postgres = await service('postgres');
const url = postgres.missing === undefined ? postgres.url : '';

describe('options', () => {
  test.each([
    [{}, 'url: expected either url or pool, got undefined'],
    [
      { url: 'postgres://x', durability: 'hope' as 'power' },
      'durability: expected process or power, got "hope"',
    ],
    [
      { url: 'postgres://x', connectionMax: 5 } as object,
      'connectionMax: not an option; did you mean connectionsMax?',
    ],
    [{ url: 'postgres://x', answerWithinMs: 0 }, 'answerWithinMs: expected a number of ms above 0, got 0'],
    [{ url: 'postgres://x', connectionsMax: 0 }, 'connectionsMax: expected a whole number above 0, got 0'],
    [{ url: 'postgres://x', keepParkedMs: -1 }, 'keepParkedMs: expected a number of ms from 0, got -1'],
    [
      { url: 'postgres://x', limits: { batchMax: Number.NaN } },
      'limits.batchMax: expected a number from 1, got NaN',
    ],
    [{ url: 'postgres://x', schema: '' }, 'schema: expected a name of 1 to 63 bytes, got ""'],
  ])('%j is refused with a sentence', async (options, sentence) => {
    await expect(openPostgres(options)).rejects.toThrow(sentence);
  });

  test('a server that is not there is told', async () => {
    const opening = openPostgres({ url: 'postgres://nobody@127.0.0.1:1/none' });
    await expect(opening).rejects.toMatchObject({ code: 'HOLDFAST_POSTGRES_UNAVAILABLE' });
  });
});

test.each([
  [
    '53100',
    'could not extend file "base/5/1"',
    'HOLDFAST_POSTGRES_FULL',
    'The disk of PostgreSQL is full: could',
  ],
  ['53300', 'too many clients already', 'HOLDFAST_POSTGRES_FULL', 'PostgreSQL has no room left: too many'],
  // The server dies of it, and what it was about to commit may be there when it is back.
  [
    '53100',
    'could not write to file "pg_wal/xlogtemp.1"',
    'HOLDFAST_POSTGRES_UNAVAILABLE',
    'cannot be reached',
  ],
])('%s, %s, is told as %s', (code, message, ours, sentence) => {
  const told = toPostgresError(Object.assign(new Error(message), { code })) as Error;
  expect(told).toMatchObject({ code: ours });
  expect(told.message).toContain(sentence);
});

describe.skipIf(postgres.missing)(titled('postgres engine', postgres), () => {
  const ground = newGround(url);
  afterAll(() => ground.clear());

  test('warns once about a transaction that holds back vacuum', async () => {
    const warnings: PostgresWarning[] = [];
    const engine = await ground.open({
      longTransactionMs: 1,
      onWarning: (warning) => warnings.push(warning),
    });
    const idler = new pg.Client({ connectionString: url, application_name: 'the idler' });
    await idler.connect();
    await idler.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const { rows } = await idler.query('SELECT pg_backend_pid() AS pid');
    await new Promise((resolve) => setTimeout(resolve, 5));

    await engine.sweep(1);
    await engine.sweep(1);
    await idler.end();

    expect(warnings.filter(({ pid }) => pid === rows[0].pid)).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ code: 'vacuum_held_back' });
    expect(warnings.find(({ pid }) => pid === rows[0].pid)?.message).toContain('the idler');
  });

  test('gives up on a way that is cut, and takes another', async () => {
    const way = await cuttableWay(url);
    const engine = await ground.open({ url: way.url, connectionsMax: 1, answerWithinMs: 1500 });
    await engine.broker.declare('far');
    const [published] = await engine.broker.publish('far', [{ payload: '1' }]);
    const request = { owner: 'w', limit: 1, leaseMs: 60_000 };
    const { deliveries } = await engine.broker.lease('far', request);
    expect(deliveries).toMatchObject([{ id: published!.id }]);

    const unavailable = { code: 'HOLDFAST_POSTGRES_UNAVAILABLE' };
    way.cut();
    await expect(engine.broker.lease('far', request)).rejects.toMatchObject(unavailable);
    expect(await engine.broker.lease('far', request)).toMatchObject({ deliveries: [] });
    way.cut();
    const settlements = [{ lease: deliveries[0]!.lease, kind: 'ack', commit: () => {} } as const];
    await expect(engine.broker.settle(settlements)).rejects.toMatchObject(unavailable);
    expect(await engine.broker.settle(settlements)).toMatchObject([{ took: true }]);
    way.close();
  });

  test('that must be there is not made', async () => {
    const nowhere = newGround(url);
    await expect(nowhere.open({ mustExist: true })).rejects.toThrow(
      `schema "${nowhere.schema}" holds no store of ours`,
    );
    const { rows } = await nowhere.admin.query('SELECT to_regnamespace($1) AS there', [nowhere.schema]);
    expect(rows).toEqual([{ there: null }]);
    await nowhere.open();
    await nowhere.open({ mustExist: true });
    await nowhere.clear();
  });

  test('is made once by many who start at the same time', async () => {
    const crowd = newGround(url);
    const engines = await Promise.all(Array.from({ length: 5 }, () => crowd.open({ connectionsMax: 1 })));
    await Promise.all(engines.map((engine) => engine.broker.declare('t')));
    expect(await engines[4]!.broker.topics()).toEqual(['t']);
    await crowd.clear();
  });

  test('brings an old schema up to date, and refuses one that is too new', async () => {
    const old = newGround(url);
    await old.open();
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const database = new Database(
      pool as unknown as PostgresPool,
      old.schema,
      (await import('holdfast')).systemClock,
    );
    const { version } = migrations.at(-1)!;
    const sql = 'ALTER TABLE topic ADD COLUMN note text';
    const added = { version: version + 1, oldest: version, sql };
    await migrate(database, old.schema, [...migrations, added]);
    await migrate(database, old.schema, [...migrations, added]);
    // Only something was added: the version before still works on it.
    const engine = await old.open();
    await engine.broker.declare('t');
    expect(await engine.broker.publish('t', [{ payload: 'x' }])).toMatchObject([{ duplicate: false }]);

    const changed = { version: version + 2, oldest: version + 2, sql: 'SELECT 1' };
    await migrate(database, old.schema, [...migrations, added, changed]);
    await expect(old.open()).rejects.toThrow(
      `is at version ${version + 2}, and this package works with version ${version}`,
    );
    await pool.end();
    await old.clear();
  });

  test('says what the connections of a given pool promise', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const given = pool as unknown as PostgresPool;
    const engine = await openPostgres({ pool: given, schema: ground.schema });
    expect(engine.durability).toBe('power');
    const contrary = openPostgres({ pool: given, schema: ground.schema, durability: 'process' });
    await expect(contrary).rejects.toThrow('durability: expected power, as the connections of the pool say');
    await engine.close();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  test('publishes with a transaction of the caller’s, and wakes who sleeps when that commits', async () => {
    const [engine, elsewhere] = await Promise.all([ground.open(), ground.open()]);
    await engine.broker.declare('outbox');
    let rings = 0;
    elsewhere.broker.doorbell('outbox', () => {
      rings += 1;
    });
    await elsewhere.broker.lease('outbox', { owner: 'w', limit: 1, leaseMs: 1000 });
    const listens = async () => {
      const text = `SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE '%${ground.schema}%'`;
      return (await ground.admin.query(text)).rowCount;
    };
    await expect.poll(listens).toBe(1);
    const client = await ground.admin.connect();

    await client.query('BEGIN');
    await engine.broker.publishWithin(client, 'outbox', [{ payload: 'undone' }]);
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    await engine.broker.publishWithin(client, 'outbox', [{ payload: 'done' }]);
    const before = rings;
    await client.query('COMMIT');
    client.release();

    await expect.poll(() => rings).toBeGreaterThan(before);
    const { deliveries } = await elsewhere.broker.lease('outbox', { owner: 'w', limit: 5, leaseMs: 1000 });
    expect(deliveries.map(({ payload }) => payload)).toEqual(['done']);
  });

  test('keeps text with a NUL, and refuses one in a name', async () => {
    const engine = await ground.open();
    await engine.broker.declare('nul');
    await engine.broker.publish('nul', [{ payload: 'a\0b', headers: { x: 'c\0d' } }]);
    const { deliveries } = await engine.broker.lease('nul', { owner: 'w', limit: 5, leaseMs: 1000 });
    expect(deliveries[0]).toMatchObject({ payload: 'a\0b', headers: { x: 'c\0d' } });
    const publishing = engine.broker.publish('nul', [{ payload: '', key: 'k\0' }]);
    await expect(publishing).rejects.toThrow('events[0].key: expected a text without NUL');
    const sentence = 'a text for PostgreSQL: expected one without NUL, got "a\\u0000b"';
    await expect(engine.triage.get('a\0b')).rejects.toThrow(sentence);
    await expect(engine.triage.count({ topic: ['x', 'a\0b'] })).rejects.toThrow(sentence);
  });

  test('drops the marks of a time that is over as a table', async () => {
    const engine = await ground.open({ keepMarksMs: 0 });
    const old = `${ground.schema}.mark_01000`;
    await ground.admin.query(
      `CREATE TABLE ${old} PARTITION OF ${ground.schema}.mark FOR VALUES FROM ('01000') TO ('01002')`,
    );
    const mark = { handler: 'h', eventId: '01000000-0000-7000-8000-000000000001' };
    expect(await engine.ledger.mark([mark])).toEqual([true]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await engine.sweep(100);
    const { rows } = await ground.admin.query(`SELECT to_regclass('${old}') IS NULL AS gone`);
    expect(rows).toEqual([{ gone: true }]);
    expect(await engine.ledger.isMarked([mark])).toEqual([false]);
  });
});

/** A way to the server that can be cut: what is on it then is neither delivered nor refused. */
async function cuttableWay(to: string): Promise<{ url: string; cut(): void; close(): void }> {
  const { hostname, port } = new URL(to);
  const open = new Set<net.Socket>();
  const listener = net.createServer((near) => {
    const far = net.connect(Number(port), hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      socket.on('error', () => {}); // its other end was given up
      open.add(socket);
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(to);
  url.host = `127.0.0.1:${(listener.address() as net.AddressInfo).port}`;
  return {
    url: String(url),
    cut() {
      for (const socket of open) socket.unpipe().pause();
    },
    close() {
      for (const socket of open) socket.destroy();
      listener.close();
    },
  };
}
