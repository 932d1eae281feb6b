import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { openSqlite, type SqliteOptions } from '@holdfast/sqlite';
import fc from 'fast-check';
import { type Clock, later } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { decodeSeqs, encodeSeqs } from '../src/run-length-seqs.ts';
import { migrate, schemaSteps } from '../src/schema.ts';

const run = promisify(execFile);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function newFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-sqlite-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  return path.join(folder, 'events.db');
}

async function setup(options: Partial<SqliteOptions> = {}) {
  const { file = newFile() } = options;
  const engine = await openSqlite({ ...options, file });
  cleanups.push(() => engine.close());
  await engine.broker.declare('orders');
  return { ...engine, file };
}

/** A connection of someone else. */
function stranger(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  cleanups.push(() => database.close());
  return database;
}

function turn(): Promise<void> {
  return new Promise((resolve) => later(resolve));
}

test.each([
  ["openSqlite: expected options such as { file: 'x.db' }, got undefined", undefined],
  ['openSqlite: expected options such as { file: \'x.db\' }, got "x.db"', 'x.db'],
  ['openSqlite: expected options such as { file: \'x.db\' }, got "a URL"', 'libsql://user:s3cret@host/x'],
  ['file: expected the path of a file, got undefined', {}],
  ['path: not an option; did you mean file?', { path: 'x.db' }],
  ['filename: not an option; did you mean file?', { filename: 'x.db' }],
])('%s', async (said, options) => {
  await expect(openSqlite(options as never)).rejects.toThrow(said);
});

const lease = { owner: 'w', limit: 100, leaseMs: 1000 };

test('errors that look alike are kept apart', async () => {
  const { broker } = await setup();
  const base = { type: 'Error', message: 'down', stack: 'at a', fingerprint: 'f' };
  const errors = [
    base,
    base,
    { ...base, message: 'up' },
    { ...base, stack: 'at b' },
    { ...base, code: 'EPIPE' },
    { ...base, causes: [{ type: 'Error', message: 'one' }] },
    { ...base, causes: [{ type: 'Error', message: 'other' }] },
    base,
  ];
  await broker.publish(
    'orders',
    errors.map((_, index) => ({ id: String(index), payload: '' })),
  );
  for (let attempt = 1; attempt <= 2; attempt++) {
    const { deliveries } = await broker.lease('orders', lease);
    await broker.settle(
      deliveries.map((delivery, index) => {
        const error = { ...errors[index]! };
        return { lease: delivery.lease, kind: 'retry', delayMs: 0, error, story: [] };
      }),
    );
  }
  const { deliveries } = await broker.lease('orders', lease);
  expect(deliveries.map(({ lastError }) => lastError)).toEqual(errors);
});

describe('the file', () => {
  test('of a newer release is refused in one sentence', async () => {
    const { file, close } = await setup();
    await close();
    stranger(file).exec('UPDATE holdfast_schema SET version = 99');
    await expect(openSqlite({ file })).rejects.toMatchObject({
      code: 'HOLDFAST_SQLITE_SCHEMA_TOO_NEW',
      message: `the file has schema version 99, and this release knows up to ${schemaSteps.length}: open it with the newer release`,
    });
  });

  test('that must be there is not made, and one that is there is opened', async () => {
    const { file, close } = await setup();
    await close();
    await (await openSqlite({ file, mustExist: true })).close();
    const absent = `${file}.absent`;
    await expect(openSqlite({ file: absent, mustExist: true })).rejects.toMatchObject({
      code: 'HOLDFAST_SQLITE_NO_STORE',
      message: `${absent} does not exist`,
    });
    expect(existsSync(absent)).toBe(false);
    const url = openSqlite({ file: 'libsql://user:s3cret@host/x', mustExist: true });
    await expect(url).rejects.toMatchObject({
      code: 'HOLDFAST_SQLITE_NO_STORE',
      message: 'the file does not exist',
    });
  });

  test('of an older release is brought up to date, and keeps what it holds', async () => {
    const { file, broker, close } = await setup();
    await broker.publish('orders', [{ payload: 'old' }]);
    await close();
    const database = stranger(file);
    migrate(database, [...schemaSteps, 'CREATE TABLE holdfast_new (a INTEGER)']);
    expect(database.prepare('SELECT version FROM holdfast_schema').get()).toEqual({
      version: schemaSteps.length + 1,
    });
    expect(database.prepare('SELECT payload FROM holdfast_event').all()).toEqual([{ payload: 'old' }]);
    // Once is enough.
    migrate(database, [...schemaSteps, 'CREATE TABLE holdfast_new (a INTEGER)']);
  });

  test('is left as it was by a step that fails', async () => {
    const { file, close } = await setup();
    await close();
    const database = stranger(file);
    const steps = [...schemaSteps, 'CREATE TABLE holdfast_half (a INTEGER); SELECT nonsense'];
    expect(() => migrate(database, steps)).toThrow('nonsense');
    expect(database.prepare('SELECT version FROM holdfast_schema').get()).toEqual({
      version: schemaSteps.length,
    });
    expect(
      database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_half'`).get(),
    ).toBeUndefined();
  });

  test('can be opened by several at once from the beginning', async () => {
    const file = newFile();
    const engines = await Promise.all([1, 2, 3].map(() => setup({ file })));
    expect(await engines[2]!.broker.topics()).toEqual(['orders']);
  });

  test.each([
    [{ file: '' }, 'file'],
    [{ durability: 'disk' }, 'durability'],
    [{ busyMax: 5000 }, 'busyMax'],
    [{ keepMarksMs: -1 }, 'keepMarksMs'],
    [{ busyMaxMs: Number.NaN }, 'busyMaxMs'],
    [{ limits: { batchMax: Number.NaN } }, 'limits.batchMax'],
    [{ limits: { payloadMax: 5 } }, 'limits'],
  ])('cannot be opened with %j', async (wrong, field) => {
    const options = { file: 'events.db', ...wrong } as SqliteOptions;
    await expect(openSqlite(options)).rejects.toMatchObject({ path: field });
  });

  test('that is none, or cannot be made, is named', async () => {
    const folder = path.join(newFile(), 'no');
    await expect(openSqlite({ file: path.join(folder, 'folder.db') })).rejects.toThrow(
      `there is no folder ${folder}: create it first`,
    );
  });

  test.each([
    ['process', 1],
    ['power', 2],
  ] as const)('is synchronised as %s asks', async (durability, synchronous) => {
    const { transaction } = await setup({ durability });
    expect(await transaction((tx) => tx.prepare('PRAGMA synchronous').get())).toEqual({ synchronous });
  });
});

describe('writes of one turn', () => {
  test('share a commit', async () => {
    let commits = 0;
    // On virtual time a transaction does not become too long.
    const { broker } = await setup({ clock: virtualClock(), beforeWrite: () => void commits++ });
    commits = 0;
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => broker.publish('orders', [{ payload: `${index}` }])),
    );
    expect(commits).toBe(1);
    const { deliveries } = await broker.lease('orders', lease);
    expect(deliveries.map(({ payload }) => payload)).toEqual(
      Array.from({ length: 100 }, (_, index) => `${index}`),
    );
  });

  test('do not share a refusal', async () => {
    const { broker } = await setup();
    const [good, bad, other] = await Promise.allSettled([
      broker.publish('orders', [{ payload: 'a' }]),
      broker.publish('strangers', [{ payload: 'b' }]),
      broker.publish('orders', [{ payload: 'c' }]),
    ]);
    expect([good.status, bad.status, other.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await broker.counts('orders')).toMatchObject({ ready: 2 });
  });

  test('do not share what is thrown in a transaction', async () => {
    const { broker, transaction } = await setup();
    const failing = transaction((tx) => {
      broker.publishWithin(tx, 'orders', [{ payload: 'undone' }]);
      throw new Error('no');
    });
    const [undone, done] = await Promise.allSettled([
      failing,
      broker.publish('orders', [{ payload: 'done' }]),
    ]);
    expect(undone).toMatchObject({ status: 'rejected', reason: { message: 'no' } });
    expect(done.status).toBe('fulfilled');
    expect((await broker.lease('orders', lease)).deliveries).toMatchObject([{ payload: 'done' }]);
  });

  test('are refused once the engine is closed, and so are reads', async () => {
    const { broker, triage, audit, close } = await setup();
    const last = broker.publish('orders', [{ payload: 'a' }]);
    await close();
    await expect(last).resolves.toMatchObject([{ duplicate: false }]);
    const closed = { code: 'HOLDFAST_SQLITE_CLOSED' };
    await expect(broker.publish('orders', [{ payload: 'b' }])).rejects.toMatchObject(closed);
    await expect(broker.lease('orders', lease)).rejects.toMatchObject(closed);
    await expect(broker.counts('orders')).rejects.toMatchObject(closed);
    await expect(triage.list({}, { limit: 1 })).rejects.toMatchObject(closed);
    await expect(audit.list({}, { limit: 1 })).rejects.toMatchObject(closed);
  });
});

describe('a transaction', () => {
  test('cannot outlive its function', async () => {
    const { broker, transaction } = await setup();
    await expect(transaction(async () => {})).rejects.toMatchObject({ path: 'work' });
    await broker.publish('orders', [{ payload: 'a' }]);
    const [delivery] = (await broker.lease('orders', lease)).deliveries;
    const settled = await broker.settle([{ lease: delivery!.lease, kind: 'ack', commit: async () => {} }]);
    expect(settled).toMatchObject([{ took: false, because: 'commit_failed', error: { path: 'commit' } }]);
  });

  test('that finds no space is no failure of its handler: the event can be settled when there is some', async () => {
    const { broker, transaction } = await setup();
    await broker.publish('orders', [{ payload: 'a' }]);
    const { deliveries } = await broker.lease('orders', lease);
    await transaction((database) => {
      database.exec('CREATE TABLE effect (body BLOB NOT NULL)');
      const { page_count } = database.prepare('PRAGMA page_count').get() as { page_count: number };
      database.exec(`PRAGMA max_page_count = ${page_count + 2}`);
    });
    // Of several rows SQLite undoes the statement alone; of one, all that was done.
    const insert = `INSERT INTO effect SELECT zeroblob(100000) FROM json_each('[1, 2, 3]')`;
    const commit = (database: DatabaseSync) => void database.prepare(insert).run();
    const settlements = [{ lease: deliveries[0]!.lease, kind: 'ack', commit } as const];
    await expect(broker.settle(settlements)).rejects.toMatchObject({ code: 'HOLDFAST_SQLITE_FULL' });
    await transaction((database) => database.exec('PRAGMA max_page_count = 1000000'));
    expect(await broker.settle(settlements)).toMatchObject([{ took: true }]);
    expect(
      await transaction((database) => database.prepare('SELECT count(*) AS n FROM effect').get()),
    ).toEqual({ n: 3 });
  });

  test('can be of a connection of the user', async () => {
    const { broker, file } = await setup();
    const own = stranger(file);
    expect(() => broker.publishWithin(own, 'orders', [{ payload: 'a' }])).toThrow('a transaction under way');
    own.exec('CREATE TABLE sale (id INTEGER); BEGIN; INSERT INTO sale VALUES (1)');
    broker.publishWithin(own, 'orders', [{ payload: 'undone' }]);
    own.exec('ROLLBACK; BEGIN');
    broker.publishWithin(own, 'orders', [{ payload: 'done' }]);
    own.exec('COMMIT');
    expect((await broker.lease('orders', lease)).deliveries).toMatchObject([{ payload: 'done' }]);
  });
});

describe('while another process writes', () => {
  test('a write waits without a thread that stands still, and is made', async () => {
    const clock = virtualClock();
    const { broker, file } = await setup({ clock });
    const other = stranger(file);
    other.exec('BEGIN IMMEDIATE');
    const publishing = broker.publish('orders', [{ payload: 'a' }]);
    await turn();
    expect(clock.pendingTimers).toBe(1);
    other.exec('COMMIT');
    await clock.advance(20);
    expect(await publishing).toMatchObject([{ duplicate: false }]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a write is refused after a while, and nothing of it is stored', async () => {
    const clock = virtualClock();
    const { broker, file } = await setup({ clock, busyMaxMs: 100 });
    const other = stranger(file);
    other.exec('BEGIN IMMEDIATE');
    const publishing = broker.publish('orders', [{ payload: 'a' }]);
    const refused = expect(publishing).rejects.toMatchObject({
      code: 'HOLDFAST_SQLITE_BUSY',
      message: `another process has kept ${file} locked for 100 ms`,
    });
    await turn();
    await clock.advance(200);
    await refused;
    other.exec('COMMIT');
    expect(await broker.counts('orders')).toMatchObject({ ready: 0 });
  });

  test('a look that finds nothing needs no lock', async () => {
    const { broker, file } = await setup();
    stranger(file).exec('BEGIN IMMEDIATE');
    expect(await broker.lease('orders', lease)).toMatchObject({ deliveries: [], nextDueInMs: undefined });
  });
});

describe('two processes on one file', () => {
  test('give each event to one of them, in the order of its key, and ring for each other', async () => {
    const { broker, file } = await setup();
    await broker.declare('lanes', { ordering: 'key' });
    const script = path.join(import.meta.dirname, 'publisher-process.ts');
    const start = (name: string) =>
      run(process.execPath, [
        '--conditions=holdfast-source',
        '--no-warnings',
        script,
        file,
        'lanes',
        name,
        '100',
      ]);
    let isOver = false;
    const publishing = Promise.all([start('a'), start('b')]).then(() => {
      isOver = true;
    });
    const other = await setup({ file });
    const seen: Record<string, string[]> = { a: [], b: [] };
    let rings = 0;
    const leave = broker.doorbell('lanes', () => void rings++);
    for (let turns = 0, isLast = false; !isLast; turns++) {
      isLast = isOver;
      const { broker: hand } = turns % 2 === 0 ? { broker } : other;
      const { deliveries } = await hand.lease('lanes', { ...lease, owner: `w${turns % 2}`, runMax: 7 });
      for (const { key, payload } of deliveries) seen[key!]!.push(String(payload));
      await hand.settle(deliveries.map((delivery) => ({ lease: delivery.lease, kind: 'ack' })));
      if (deliveries.length > 0) isLast = false;
      else await turn();
    }
    await publishing;
    leave();
    for (const name of ['a', 'b']) {
      expect(seen[name]).toEqual(Array.from({ length: 100 }, (_, index) => `${name} ${index}`));
    }
    expect(rings).toBeGreaterThan(0);
  });

  test('keep the order in which they took turns', async () => {
    const first = await setup();
    const second = await setup({ file: first.file });
    await first.broker.declare('lanes', { ordering: 'key' });
    const payloads = Array.from({ length: 20 }, (_, index) => `${index}`);
    for (const [index, payload] of payloads.entries()) {
      await (index % 3 === 0 ? first : second).broker.publish('lanes', [{ payload, key: 'k' }]);
    }
    const { deliveries } = await first.broker.lease('lanes', { ...lease, runMax: 20 });
    expect(deliveries.map(({ payload }) => payload)).toEqual(payloads);
  });
});

describe('a doorbell', () => {
  test('rings at once for a publish in the same process', async () => {
    const { broker } = await setup({ clock: virtualClock() });
    let rings = 0;
    broker.doorbell('orders', () => void rings++);
    await broker.publish('orders', [{ payload: 'a' }]);
    await Promise.resolve();
    expect(rings).toBe(1);
  });

  test('lets nothing tick when no one waits for it', async () => {
    const clock = virtualClock();
    const { broker } = await setup({ clock });
    expect(clock.pendingTimers).toBe(0);
    const leave = broker.doorbell('orders', () => {});
    const leaveToo = broker.doorbell('orders', () => {});
    expect(clock.pendingTimers).toBe(1);
    leave();
    leaveToo();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('marks', () => {
  const ids = ['019a0000-0000-7000-8000-000000000001', '019a0000-0000-7000-8000-000000000002', 'order 17'];
  const marks = ids.map((eventId) => ({ handler: 'h', eventId }));

  test('are kept as long as was said, and forgotten a bucket at a time, at most so many at once', async () => {
    const clock = virtualClock();
    const { ledger, sweep } = await setup({ clock, keepMarksMs: 1000 });
    await ledger.mark(marks);
    await clock.advance(900);
    // The last one keeps the bucket that it is in.
    await ledger.mark([{ handler: 'h', eventId: '019a0000-0000-7000-8000-000000000003' }]);
    await clock.advance(999);
    await sweep(100);
    expect(await ledger.isMarked(marks)).toEqual([true, true, false]);
    await clock.advance(1000);
    expect([await sweep(2), await sweep(2), await sweep(2)]).toEqual([2, 1, 0]);
    expect(await ledger.isMarked(marks)).toEqual([false, false, false]);
  });

  test('that were undone are not remembered', async () => {
    const { broker, ledger } = await setup();
    const published = await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    const { deliveries } = await broker.lease('orders', lease);
    const fail = () => {
      throw new Error('no');
    };
    const [first, second] = deliveries.map(({ lease: held }) => held);
    await broker.settle([{ lease: first!, kind: 'ack', marks: ['new handler'], commit: fail }]);
    await broker.settle([{ lease: second!, kind: 'ack', marks: ['new handler'] }]);
    const marked = await ledger.isMarked(
      published.map(({ id }) => ({ handler: 'new handler', eventId: id })),
    );
    expect(marked).toEqual([false, true]);
  });
});

test('a count that was slow is answered again for a while, with the time at which it was made', async () => {
  const machine = virtualClock();
  let countMs = 0;
  let passedMs = 0;
  const clock: Clock = {
    ...machine,
    now: () => {
      passedMs += countMs;
      return machine.now() + passedMs;
    },
  };
  const { broker } = await setup({ clock, monotonic: { bootId: 'a', now: machine.now } });
  countMs = 51;
  const first = await broker.counts('orders');
  countMs = 0;
  await broker.publish('orders', [{ payload: 'a' }]);
  await machine.advance(20 * 51 - 1);
  expect(await broker.counts('orders')).toEqual(first);
  await machine.advance(1);
  expect(await broker.counts('orders')).toMatchObject({ ready: 1, asOf: machine.epochMs() });
  await broker.publish('orders', [{ payload: 'b' }]);
  expect(await broker.counts('orders')).toMatchObject({ ready: 2 });
});

test('parked events of a transaction that is rolled back are not counted', async () => {
  let isFull = false;
  const { broker, triage } = await setup({
    beforeWrite: () => {
      if (isFull) throw new Error('no space');
    },
  });
  await broker.publish('orders', [{ payload: 'a' }]);
  const [delivery] = (await broker.lease('orders', lease)).deliveries;
  const park = [{ lease: delivery!.lease, kind: 'park', stop: 'poison', story: [] } as const];
  isFull = true;
  await expect(broker.settle(park)).rejects.toThrow('no space');
  expect(await triage.count({})).toBe(0);
  isFull = false;
  expect(await broker.settle(park)).toMatchObject([{ took: true }]);
  expect(await triage.count({})).toBe(1);
});

test('a file that is full says so, and what was stored before is still there', async () => {
  const { broker, transaction, file } = await setup();
  const { page_count: pages } = await transaction((tx) => {
    return tx.prepare('PRAGMA page_count').get() as { page_count: number };
  });
  await transaction((tx) => tx.prepare(`PRAGMA max_page_count = ${pages + 20}`).get());
  const payload = 'x'.repeat(1000);
  const stored: string[] = [];
  const fill = async () => {
    for (;;) stored.push(...(await broker.publish('orders', [{ payload }, { payload }])).map(({ id }) => id));
  };
  await expect(fill()).rejects.toMatchObject({
    code: 'HOLDFAST_SQLITE_FULL',
    message: `there is no space left for ${file}: nothing of this was stored`,
  });
  const { deliveries } = await broker.lease('orders', { ...lease, limit: 1000 });
  expect(deliveries.map(({ id }) => id)).toEqual(stored);
  await broker.settle(deliveries.map((delivery) => ({ lease: delivery.lease, kind: 'ack' })));
  await expect(broker.publish('orders', [{ payload }])).resolves.toMatchObject([{ duplicate: false }]);
});

test('sequences are the same after they were written down', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 2 ** 40, max: 2 ** 40 + 50 }), { minLength: 1 }), (seqs) => {
      expect(decodeSeqs(encodeSeqs(seqs))).toEqual(seqs.toSorted((a, b) => a - b));
    }),
  );
  expect(encodeSeqs(Array.from({ length: 1000 }, (_, index) => 2 ** 40 + index))).toBe(`${2 ** 40} 0 1000`);
});
