import { existsSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import {
  defaultSizeLimits,
  type Engine,
  type Features,
  readLimits,
  type SizeLimitOptions,
} from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields, isDocument } from 'holdfast/fields';
import { Appointments } from './appointments.ts';
import { AuditLog } from './audit-log.ts';
import { sqliteBroker } from './broker.ts';
import { ControlBoard } from './controls.ts';
import { Doorbells } from './doorbells.ts';
import { sqliteJournal } from './journal.ts';
import { KeyOrder } from './key-order.ts';
import { LeaseIndex } from './lease-index.ts';
import { leases } from './leases.ts';
import { SqliteLedger } from './ledger.ts';
import { Marks } from './marks.ts';
import { openDatabase } from './numbered-parameters.ts';
import { sqliteOperations } from './operations.ts';
import { ParkedCounts } from './parked-counts.ts';
import { ParkedSearch } from './parked-search.ts';
import { ParkingLot } from './parking-lot.ts';
import { SqlitePresence } from './presence.ts';
import { queueInspection } from './queue-inspection.ts';
import { SqliteRateLimits } from './rate-limits.ts';
import { migrate, versionOf } from './schema.ts';
import { Settlements } from './settlements.ts';
import { SqliteError, toSqliteError } from './sqlite-errors.ts';
import { Store } from './store.ts';
import { type MonotonicClock, monotonicClockOf } from './store-clock.ts';
import { topics } from './topics.ts';
import { sqliteTriage } from './triage.ts';
import { WaitingList } from './waiting-list.ts';

/** The options of `openSqlite`. Only `file` is required. */
export interface SqliteOptions {
  /** The path of the file, which is created if it does not exist. It may also contain your own tables. Required. */
  readonly file: string;
  /** True: rejects a file without the tables of this package, instead of creating them. Default: `false`. */
  readonly mustExist?: boolean | undefined;
  /** What a commit survives. `process`: a killed process. `power`: also a power cut. Default: `process`. */
  readonly durability?: 'process' | 'power' | undefined;
  /** The clock for dates, such as the time at which an event was published. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The clock for leases and delays. Default: the machine's monotonic clock, or `now` of a given `clock`. */
  readonly monotonic?: MonotonicClock | undefined;
  /** The source of random numbers, for ids. Default: the system's. */
  readonly random?: Random | undefined;
  /** The largest events and batches. Default: those of `SizeLimits`, with batches of 1,000 events. */
  readonly limits?: SizeLimitOptions | undefined;
  /**
   * How long it is remembered that an event was handled, in ms. Must be longer than all retries plus `keepParkedMs`.
   * Default: `5184000000` (60 days).
   */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept, in ms. Default: `2592000000` (30 days). */
  readonly keepParkedMs?: number | undefined;
  /** How long entries of the audit log are kept, in ms. Default: `31536000000` (365 days). */
  readonly keepAuditMs?: number | undefined;
  /** How long a write waits while another process locks the file, in ms. Default: `10000`. */
  readonly busyMaxMs?: number | undefined;
  /**
   * Called before each commit. If it throws, the transaction is rolled back. Tests use it to simulate crashes. Default:
   * none.
   */
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

/** Stores events, idempotency keys, parked events and rate limits in one file. */
export interface SqliteEngine extends Required<Engine<DatabaseSync>> {
  /**
   * Runs `work` in a transaction, together with events from `publishWithin`. It must be synchronous. If it
   * throws, its writes are rolled back.
   */
  transaction<T>(work: (database: DatabaseSync) => T): Promise<T>;
}

/** The features of the SQLite engine, which has every feature that an engine can have. */
export const sqliteFeatures: Features = {
  arrivalOrder: true,
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  portableLeases: true,
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
/** How many ms SQLite blocks the thread to wait for a lock. After that, a timer tries again. */
const busyTimeoutMs = 5;
/** How many ms SQLite blocks the thread while the file is opened: no other work waits then. */
const openTimeoutMs = 5000;

/** The page cache is small: a queue uses few pages, and a commit often walks through the whole cache. */
const cacheKib = 8 * 1024;

/** Opens an engine that stores everything in one file. Many processes may open the same file. */
export async function openSqlite(options: SqliteOptions): Promise<SqliteEngine> {
  assertOptions(options);
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
  const audit = new AuditLog(store);
  const board = new ControlBoard(store, bells, audit);
  const appointments = new Appointments(store, declared, bells);
  const given = leases(store, declared, board, appointments, bells);
  const marks = new Marks(store, keepMarksMs);
  const counts = new ParkedCounts(store);
  const lot = new ParkingLot(store, audit, counts, keepParkedMs);
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
  const leaseIndex = new LeaseIndex(store);
  const inspection = queueInspection(store, declared, board, appointments, keyOrder, bells, leaseIndex);
  const search = new ParkedSearch(store, counts);
  const operations = sqliteOperations(store, audit, counts, search);
  const presence = new SqlitePresence(store);
  const ledger = new SqliteLedger(store, marks);
  const rateLimits = new SqliteRateLimits(store);
  const journal = sqliteJournal(store, bells, audit, limits);
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
      waitingList: new WaitingList(store, declared, board, leaseIndex),
      audit,
    }),
    ledger,
    triage: sqliteTriage({ store, audit, lot, counts, search, operations, limits }),
    rateLimits,
    journal,
    controls: board,
    audit,
    presence,

    async sweep(limit) {
      const sweeps: ((now: number, left: number, wall: number) => number)[] = [
        (now, left) => Number(removeSettled.run(now, left).changes),
        (now, left) => ledger.sweep(now, left),
        (now, left) => marks.sweep(now, left),
        (now, left) => rateLimits.sweep(now, left),
        (now, left) => presence.sweep(now, left),
        (now, left) => journal.sweep(now, left),
        (now, left, wall) => lot.sweep(now, wall, left),
        // Wall time may jump, so an entry must be old by both clocks.
        (now, left, wall) => audit.sweep(Math.min(now, wall) - keepAuditMs, left),
      ];
      return store.write((now, wall) => {
        let swept = 0;
        for (const sweep of sweeps) if (swept < limit) swept += sweep(now, limit - swept, wall);
        return swept;
      });
    },

    async transaction(work) {
      // Other jobs may share the transaction, so an error must roll back only `work`.
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
    // Opening a missing file would create it, so check first.
    if (mustExist && !existsSync(file)) throw noFile(file);
    assertFolder(file);
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

function assertOptions(options: object): void {
  if (!isDocument(options)) {
    // A text may be a URL with a password, which the error must not show.
    const shown = typeof options === 'string' && isUrl(options) ? 'a URL' : options;
    throw new OptionsError('openSqlite', shown, "options such as { file: 'x.db' }");
  }
  for (const word of ['path', 'filename']) {
    if (!Object.hasOwn(options, word)) continue;
    throw new OptionsError(word, undefined, Object.keys(known).join(', '), 'file', true);
  }
  assertKnownFields(known, options);
}

function noFile(file: string): SqliteError {
  if (file === ':memory:') return noStore();
  return new SqliteError('NO_STORE', `${isUrl(file) ? 'the file' : file} does not exist`);
}

function noStore(): SqliteError {
  return new SqliteError('NO_STORE', 'the file holds no store of ours');
}

/**
 * Throws if the folder of the file does not exist, because SQLite itself would only say "unable to open
 * database file". A URL is not checked: it may contain a password, which the error must not show.
 */
function assertFolder(file: string): void {
  if (file === ':memory:' || isUrl(file)) return;
  const folder = path.dirname(path.resolve(file));
  if (!existsSync(folder)) throw new SqliteError('FAILED', `there is no folder ${folder}: create it first`);
}

function isUrl(file: string): boolean {
  return file.startsWith('file:') || file.includes('://');
}
