import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import {
  defaultSizeLimits,
  type Engine,
  type Features,
  readLimits,
  type SizeLimits,
} from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { Appointments } from './appointments.ts';
import { sqliteBroker } from './broker.ts';
import { ControlBoard } from './controls.ts';
import { Doorbells } from './doorbells.ts';
import { KeyOrder } from './key-order.ts';
import { leases } from './leases.ts';
import { SqliteLedger } from './ledger.ts';
import { Marks } from './marks.ts';
import { openDatabase } from './numbered-parameters.ts';
import { ParkedSearch } from './parked-search.ts';
import { ParkingLot } from './parking-lot.ts';
import { queueInspection } from './queue-inspection.ts';
import { SqliteRateLimits } from './rate-limits.ts';
import { migrate, versionOf } from './schema.ts';
import { Settlements } from './settlements.ts';
import { SqliteError, toSqliteError } from './sqlite-errors.ts';
import { Store } from './store.ts';
import { type MonotonicClock, monotonicClockOf } from './store-clock.ts';
import { topics } from './topics.ts';
import { sqliteTriage } from './triage.ts';

export interface SqliteOptions {
  /**
   * The path of the file, which is created if it does not exist. It may have other tables: ours begin with `holdfast_`.
   */
  readonly file: string;
  /** If true, a file without our tables is rejected and left unchanged. For tools that only read. */
  readonly mustExist?: boolean | undefined;
  /** What a committed write survives. `process` (the default): the process is killed. `power`: also a power cut. */
  readonly durability?: 'process' | 'power' | undefined;
  readonly clock?: Clock | undefined;
  /**
   * The clock that leases and delays count on. Default: the machine's monotonic clock, which all processes share. If
   * the option `clock` is given, the default is the `now` of that clock. For tests in which several clocks stand for
   * several processes.
   */
  readonly monotonic?: MonotonicClock | undefined;
  readonly random?: Random | undefined;
  /** Maximum sizes of events and batches. A batch is one transaction, so its default is 1,000 events. */
  readonly limits?: Partial<SizeLimits> | undefined;
  /**
   * How long marks are kept; a mark records that a handler has processed an event. It must be longer than the longest
   * retry and the retention of parked events together. Default: 60 days.
   */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept. Default: 30 days. */
  readonly keepParkedMs?: number | undefined;
  /** How long entries of the audit log are kept. Default: 365 days. */
  readonly keepAuditMs?: number | undefined;
  /** How long another process may keep the file locked before a write is rejected. Default: 10 s. */
  readonly busyMaxMs?: number | undefined;
  /** Called before each commit. If it throws, the transaction is rolled back. For tests of crashes. */
  readonly beforeWrite?: (() => void) | undefined;
}

const known: Readonly<Record<keyof SqliteOptions, true>> = {
  file: true,
  mustExist: true,
  durability: true,
  clock: true,
  monotonic: true,
  random: true,
  limits: true,
  keepMarksMs: true,
  keepParkedMs: true,
  keepAuditMs: true,
  busyMaxMs: true,
  beforeWrite: true,
};

/** An engine that stores everything in one file: events, idempotency keys, parked events and rate limits. */
export interface SqliteEngine extends Required<Engine<DatabaseSync>> {
  /**
   * Runs `work` in a transaction on the engine's connection, so that your own writes commit together with
   * `publishWithin`. `work` must be synchronous; an error that it throws rolls its writes back.
   */
  transaction<T>(work: (database: DatabaseSync) => T): Promise<T>;
}

export const sqliteFeatures: Features = {
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  retriesShare: true,
  suspects: true,
  waitingList: true,
  quarantine: true,
  sharedControls: true,
  doorbell: true,
  retention: true,
  marksWithSettlement: true,
  sharedTransaction: true,
  parksInTriage: true,
  durable: true,
};

const dayMs = 24 * 60 * 60 * 1000;
/**
 * How long SQLite blocks the thread while another process holds the lock. After that time, a timer tries to get the
 * lock again.
 */
const busyTimeoutMs = 5;
/**
 * The same timeout while the file is opened. It is long because there is no other work to do until the file is open.
 */
const openTimeoutMs = 5000;

/**
 * The page cache is small on purpose: a queue uses few pages, and the operating system caches the file. A large cache
 * costs time, because at most commits SQLite walks over all of it (`pcache1Truncate`, after a b-tree was balanced with
 * pages of the free list).
 */
const cacheKib = 8 * 1024;

/**
 * Opens a file as an engine for events, idempotency keys, parked events and rate limits. Many processes may open the
 * same file.
 */
export async function openSqlite(options: SqliteOptions): Promise<SqliteEngine> {
  assertKnownFields(known, options);
  const { file, durability = 'process', clock = systemClock, random = systemRandom } = options;
  const { keepMarksMs = 60 * dayMs, keepParkedMs = 30 * dayMs, keepAuditMs = 365 * dayMs } = options;
  const { monotonic = monotonicClockOf(clock) } = options;
  const { busyMaxMs = 10_000, beforeWrite = () => {}, mustExist = false } = options;
  if (typeof file !== 'string' || file === '') throw new OptionsError('file', file, 'the path of a file');
  if (typeof mustExist !== 'boolean') throw new OptionsError('mustExist', mustExist, 'true or false');
  if (durability !== 'process' && durability !== 'power') {
    throw new OptionsError('durability', durability, `'process' or 'power'`);
  }
  for (const [name, value] of Object.entries({ keepMarksMs, keepParkedMs, keepAuditMs, busyMaxMs })) {
    if (!(value >= 0 && value < Infinity)) throw new OptionsError(name, value, 'a number of ms from 0');
  }
  const limits = readLimits(options.limits, { ...defaultSizeLimits, batchMax: 1000 });

  const store = new Store(connect(file, durability, mustExist), {
    file,
    clock,
    monotonic,
    random,
    busyMaxMs,
    beforeWrite,
  });
  const bells = new Doorbells(store);
  const declared = topics(store);
  const board = new ControlBoard(store, bells);
  const appointments = new Appointments(store, declared, bells);
  const given = leases(store, declared, board, appointments, bells);
  const marks = new Marks(store, keepMarksMs);
  const lot = new ParkingLot(store, keepParkedMs);
  const keyOrder = new KeyOrder(store, bells);
  const settlements = new Settlements({
    store,
    topics: declared,
    leases: given,
    marks,
    lot,
    keyOrder,
    bells,
  });
  const inspection = queueInspection(store, declared, board, appointments, keyOrder, bells);
  const ledger = new SqliteLedger(store, marks);
  const rateLimits = new SqliteRateLimits(store);
  const removeSettled = store.prepare(`
    DELETE FROM holdfast_settled WHERE seq IN (SELECT seq FROM holdfast_settled WHERE removed_at <= ? LIMIT ? + 0)`);

  return {
    name: 'sqlite',
    durability,
    features: sqliteFeatures,
    broker: sqliteBroker({
      store,
      limits,
      topics: declared,
      board,
      bells,
      leases: given,
      settlements,
      inspection,
    }),
    ledger,
    triage: sqliteTriage(store, lot, new ParkedSearch(store), limits),
    rateLimits,

    async sweep(limit) {
      const sweeps: ((now: number, left: number, wall: number) => number)[] = [
        (now, left) => Number(removeSettled.run(now, left).changes),
        (now, left) => ledger.sweep(now, left),
        (now, left) => marks.sweep(now, left),
        (now, left) => rateLimits.sweep(now, left),
        (now, left, wall) => lot.sweep(now, wall, left),
        // Audit entries have wall time. An entry is removed only when it is old enough by both the store's clock and
        // the wall clock.
        (now, left, wall) => lot.sweepAudit(Math.min(now, wall) - keepAuditMs, left),
      ];
      return store.write((now, wall) => {
        let swept = 0;
        for (const sweep of sweeps) if (swept < limit) swept += sweep(now, limit - swept, wall);
        return swept;
      });
    },

    async transaction(work) {
      // Other jobs may share the transaction, so a savepoint is used: an error rolls back `work` alone.
      const outcome = await store.write(() => {
        store.database.exec('SAVEPOINT holdfast_work');
        try {
          const answer = work(store.database);
          if (answer instanceof Promise) {
            throw new OptionsError('work', 'a promise', 'a function that is done when it returns');
          }
          return { answer };
        } catch (error) {
          if (!store.database.isTransaction) throw error;
          store.database.exec('ROLLBACK TO holdfast_work');
          return { error };
        } finally {
          if (store.database.isTransaction) store.database.exec('RELEASE holdfast_work');
        }
      });
      if ('error' in outcome) throw outcome.error;
      return outcome.answer;
    },

    async close() {
      bells.stop();
      store.close();
    },
  };
}

function connect(file: string, durability: 'process' | 'power', mustExist: boolean): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    // This is checked before the file is opened, because opening a missing file would create it.
    if (mustExist && !existsSync(file)) throw noStore();
    database = openDatabase(file, { timeout: openTimeoutMs });
    if (mustExist && versionOf(database) === undefined) throw noStore();
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'};
      PRAGMA wal_autocheckpoint = 4000;
      PRAGMA journal_size_limit = 33554432;
      PRAGMA cache_size = -${cacheKib};
      PRAGMA temp_store = MEMORY`);
    migrate(database);
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    return database;
  } catch (error) {
    database?.close();
    throw toSqliteError(error, file);
  }
}

function noStore(): SqliteError {
  return new SqliteError('NO_STORE', 'the file holds no store of ours');
}
