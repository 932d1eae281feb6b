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
   * True after a shared transaction failed. After that, the job runs in its own transaction, which shows
   * whether the job caused the failure.
   */
  isAlone: boolean;
  isSecondTry: boolean;
}

/** After this many ms a transaction takes no more jobs, so that the event loop can run other work. */
const transactionMs = 4;

/** How long to wait while another process locks the file: 1 to 20 ms. */
const busyDelay = backoff({ strategy: 'exponential', base: 1, factor: 2, cap: 20, jitter: 'equal' });

/** The only writer of this connection. All writes of one turn of the event loop share a transaction. */
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
  readonly #beforeCommits: (() => void)[] = [];
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

  time(): Time {
    return this.look((now, wall) => ({ now, wall }));
  }

  /**
   * Returns a cached statement. Write a limit as `? + 0`: for a bare `LIMIT ?`, SQLite compiles the statement
   * again for each value.
   */
  prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /**
   * Returns a statement that gives each row as an array. With many columns, this is twice as fast as objects.
   */
  prepareRows(sql: string): StatementSync {
    const statement = this.database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  }

  /**
   * Runs `work` in a transaction that other jobs may share; resolves after the commit. If `work` throws a
   * `HoldfastError`, the other jobs still commit. So it must throw such an error before its first write.
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

  /** Runs a single read without a transaction. */
  look<T>(work: (now: number, wall: number) => T): T {
    if (this.#isClosed) throw closed(this.#settings.file);
    try {
      const { now, wall } = this.#time.read();
      return work(now, wall);
    } catch (error) {
      throw toSqliteError(error, this.#settings.file);
    }
  }

  /** Runs several reads in one transaction, so that they see the same state. */
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

  afterCommit(callback: () => void): void {
    this.#afterCommit.push(callback);
  }

  /** Calls `callback` at the end of every transaction, before the commit. `callback` may write. */
  beforeCommit(callback: () => void): void {
    this.#beforeCommits.push(callback);
  }

  /** Calls `callback` after every rollback, to clear caches. */
  onRollback(callback: () => void): void {
    this.#rollbacks.push(callback);
  }

  /** Commits the jobs in the queue, then closes the connection. */
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
      for (const callback of this.#beforeCommits) callback();
      this.#settings.beforeWrite();
      this.#commit.run();
      this.#queue.splice(0, jobs.length);
      this.#finish(jobs);
    } catch (error) {
      this.#undo();
      // Run each job in its own transaction, to find out which one caused the failure.
      if (jobs.length > 1) for (const job of jobs) job.isAlone = true;
      else if (!this.#isWorthAnotherTry(jobs[0]!, error)) {
        this.#queue.shift()?.reject(toSqliteError(error, this.#settings.file));
      }
    }
    this.#schedule();
  }

  /** Returns true if the disk was full, and a checkpoint has now emptied the write-ahead log. */
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
      // Read the clock after the job was added to `jobs`, so that an error rejects this job.
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
    // After some errors, SQLite has already ended the transaction.
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
   * Begins a transaction, or returns false. While another process locks the file, a timer tries again; after
   * `busyMaxMs`, all jobs reject.
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
