import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { timeOrderedId } from '@holdfast/contracts';
import { type Clock, HoldfastError, later, type Random, Timer } from 'holdfast';
import { backoff } from 'holdfast/machines';
import { Sequence } from './sequence.ts';
import { isBusy, isFull, SqliteError, toSqliteError } from './sqlite-errors.ts';
import { type MonotonicClock, StoreClock, type Time } from './store-clock.ts';

export interface StoreSettings {
  readonly file: string;
  readonly clock: Clock;
  readonly monotonic: MonotonicClock;
  readonly random: Random;
  /** How long another process may keep the file locked before writes are rejected. */
  readonly busyMaxMs: number;
  readonly beforeWrite: () => void;
}

interface Job {
  readonly work: (now: number, wall: number) => unknown;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  answer: unknown;
  refusal: unknown;
  /**
   * True after a shared transaction failed. The job then runs in its own transaction, which shows whether it caused the
   * failure.
   */
  isAlone: boolean;
  /** True after the disk was full for this job. The job is tried once more after a checkpoint, which may free space. */
  isSecondTry: boolean;
}

/**
 * After this time a transaction takes no more jobs, so that the event loop can run other work before the next
 * transaction.
 */
const transactionMs = 4;

/** The delay before this process tries again to lock a file that another process has locked: 1 to 20 ms. */
const busyDelay = backoff({ strategy: 'exponential', base: 1, factor: 2, cap: 20, jitter: 'equal' });

/**
 * One connection, and the only object that writes through it. All writes of one turn of the event loop share a
 * transaction: a thousand publishers wait for one commit, and a single publisher waits for no timer.
 */
export class Store {
  readonly database: DatabaseSync;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly sequence: Sequence;
  readonly #time: StoreClock;
  readonly #settings: StoreSettings;
  readonly #statements = new Map<string, StatementSync>();
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollbacks: (() => void)[] = [];
  readonly #retry: Timer;
  #queue: Job[] = [];
  #afterCommit: (() => void)[] = [];
  #isScheduled = false;
  #busySince: number | undefined;
  #busyTries = 0;
  #isClosed = false;

  constructor(database: DatabaseSync, settings: StoreSettings) {
    this.database = database;
    this.clock = settings.clock;
    this.#retry = new Timer(settings.clock, () => this.#flush());
    this.#settings = settings;
    this.newId = timeOrderedId(settings.clock, settings.random);
    this.sequence = new Sequence(database);
    this.#time = new StoreClock(database, settings.clock, settings.monotonic);
    this.#rollbacks.push(() => {
      this.sequence.forget();
      this.#time.forget();
    });
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
  }

  /** Returns the current time outside of a write. `write` passes the time to its callback. */
  time(): Time {
    return this.look((now, wall) => ({ now, wall }));
  }

  /**
   * Prepares a statement, or returns it from a cache. Write a limit as `? + 0`: with a bare `LIMIT ?` SQLite plans for
   * the bound value, and so compiles the statement again for each call.
   */
  prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /**
   * Prepares a statement that returns rows as arrays, and does not cache it. Rows with many columns are read twice as
   * fast as arrays.
   */
  prepareRows(sql: string): StatementSync {
    const statement = this.database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  }

  /**
   * Runs `work` in a transaction, which other jobs may share, and resolves after the commit. If `work` throws a
   * `HoldfastError`, only this job rejects and the others commit, so `work` must throw it before it writes anything.
   * Delays and leases count from `now`, the store's time; `wall` is the time of day, for times that people read.
   */
  write<T>(work: (now: number, wall: number) => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(closed(this.#settings.file));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({
        work,
        resolve,
        reject,
        answer: undefined,
        refusal: undefined,
        isAlone: false,
        isSecondTry: false,
      });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      later(() => this.#flush());
    });
  }

  /** Runs a read that needs no transaction, such as a single statement. */
  look<T>(work: (now: number, wall: number) => T): T {
    if (this.#isClosed) throw closed(this.#settings.file);
    try {
      const { now, wall } = this.#time.read();
      return work(now, wall);
    } catch (error) {
      throw toSqliteError(error, this.#settings.file);
    }
  }

  /** Runs several reads in one transaction, so that all of them see the same state. */
  read<T>(work: (now: number, wall: number) => T): T {
    return this.look((now, wall) => {
      this.database.exec('BEGIN');
      try {
        return work(now, wall);
      } finally {
        this.database.exec('COMMIT');
      }
    });
  }

  /** Calls `callback` after the commit of the current transaction, but not after a rollback. */
  afterCommit(callback: () => void): void {
    this.#afterCommit.push(callback);
  }

  /** Calls `callback` after every rollback, so that caches of written values can be cleared. */
  onRollback(callback: () => void): void {
    this.#rollbacks.push(callback);
  }

  /**
   * Commits the jobs in the queue, then closes the connection. Jobs that this last transaction does not commit are
   * rejected.
   */
  close(): void {
    if (this.#isClosed) return;
    if (this.#queue.length > 0) this.#flush();
    this.#isClosed = true;
    this.#retry.clear();
    for (const job of this.#queue.splice(0)) job.reject(closed(this.#settings.file));
    this.database.close();
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#isClosed || this.#queue.length === 0 || !this.#tryBegin()) return;
    const jobs: Job[] = [];
    try {
      this.#runJobs(jobs);
      this.#settings.beforeWrite();
      this.#commit.run();
      this.#queue.splice(0, jobs.length);
      this.#finish(jobs);
    } catch (error) {
      this.#undo();
      // One bad job must not fail the others: each of them runs again in its own transaction.
      if (jobs.length > 1) for (const job of jobs) job.isAlone = true;
      else if (!this.#isWorthAnotherTry(jobs[0]!, error)) {
        this.#queue.shift()?.reject(toSqliteError(error, this.#settings.file));
      }
    }
    this.#schedule();
  }

  /**
   * Returns true if the disk was full and a checkpoint may have freed space. Often our own write-ahead log fills the
   * disk; a checkpoint moves its content into the database file and truncates the log.
   */
  #isWorthAnotherTry(job: Job, error: unknown): boolean {
    if (job.isSecondTry || !isFull(error)) return false;
    job.isSecondTry = true;
    try {
      return this.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0;
    } catch (failure) {
      if (isFull(failure)) return false;
      throw failure;
    }
  }

  #runJobs(jobs: Job[]): void {
    const endsAt = this.clock.now() + transactionMs;
    let time: Time | undefined;
    for (const job of this.#queue) {
      if (jobs.length > 0 && (job.isAlone || jobs[0]!.isAlone || this.clock.now() >= endsAt)) return;
      jobs.push(job);
      // The clock is read only after the first job is in `jobs`: if reading the clock fails, this job is rejected.
      time ??= this.#time.tick();
      run(job, time);
    }
  }

  #finish(jobs: readonly Job[]): void {
    for (const { resolve, reject, answer, refusal } of jobs) {
      if (refusal === undefined) resolve(answer as never);
      else reject(refusal);
    }
    const callbacks = this.#afterCommit;
    if (callbacks.length === 0) return;
    this.#afterCommit = [];
    for (const callback of callbacks) callback();
  }

  #undo(): void {
    // After some errors SQLite has already ended the transaction.
    if (this.database.isTransaction) this.database.exec('ROLLBACK');
    this.#afterCommit = [];
    for (const callback of this.#rollbacks) callback();
  }

  #schedule(): void {
    if (this.#queue.length === 0 || this.#isScheduled) return;
    this.#isScheduled = true;
    later(() => this.#flush());
  }

  /**
   * Begins a transaction. Returns false if the transaction could not begin. If another process is writing, a timer
   * tries again until `busyMaxMs` have passed; then, and after any other error, all jobs are rejected.
   */
  #tryBegin(): boolean {
    try {
      this.#begin.run();
    } catch (error) {
      this.#waitOrRefuse(error);
      return false;
    }
    this.#busySince = undefined;
    this.#busyTries = 0;
    return true;
  }

  #waitOrRefuse(error: unknown): void {
    const { busyMaxMs, file, random } = this.#settings;
    const now = this.clock.now();
    this.#busySince ??= now;
    if (isBusy(error) && now - this.#busySince < busyMaxMs) {
      this.#isScheduled = true;
      this.#busyTries += 1;
      this.#retry.setIn(busyDelay(this.#busyTries, 0, random(), 0));
      return;
    }
    const refusal = isBusy(error)
      ? new SqliteError('BUSY', `another process has kept ${file} locked for ${busyMaxMs} ms`, {
          cause: error,
        })
      : toSqliteError(error, file);
    this.#busySince = undefined;
    this.#busyTries = 0;
    for (const job of this.#queue.splice(0)) job.reject(refusal);
  }
}

function run(job: Job, { now, wall }: Time): void {
  job.refusal = undefined;
  try {
    job.answer = job.work(now, wall);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    job.refusal = error;
  }
}

function closed(file: string): SqliteError {
  return new SqliteError('CLOSED', `${file} was closed by this process`);
}
