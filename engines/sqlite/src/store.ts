import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { timeOrderedId } from '@holdfast/contracts';
import { Alarm, type Clock, HoldfastError, later, type Random } from 'holdfast';
import { backoff } from 'holdfast/machines';
import type { MonotonicClock } from './monotonic-clock.ts';
import { Sequence } from './sequence.ts';
import { isBusy, isFull, SqliteError, toSqliteError } from './sqlite-errors.ts';
import { StoreClock, type Time } from './store-clock.ts';

export interface StoreSettings {
  readonly file: string;
  readonly clock: Clock;
  readonly monotonic: MonotonicClock;
  readonly random: Random;
  /** How long another process may keep the file before writes are refused. */
  readonly busyMaxMs: number;
  readonly beforeWrite: () => void;
}

interface Job {
  readonly work: (now: number, wall: number) => unknown;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  answer: unknown;
  refusal: unknown;
  /** It has failed together with others: a transaction of its own tells whose fault it was. */
  isAlone: boolean;
  /** There was no space for it, and some was made. */
  isSecondTry: boolean;
}

/** After so long a transaction takes no more jobs: those left have the next one, and others a turn in between. */
const transactionMs = 4;

/** Looks again for the lock of another process: soon at first, and never all at once. */
const busyDelay = backoff({ strategy: 'exponential', base: 1, factor: 2, cap: 20, jitter: 'equal' });

/**
 * One connection and its one writer. What is written in one turn of the event loop shares a transaction; so a thousand
 * publishers wait for one commit, and a lone one for no timer.
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
  readonly #retry = new Retry(() => this.#flush());
  #queue: Job[] = [];
  #afterCommit: (() => void)[] = [];
  #isScheduled = false;
  #busySince: number | undefined;
  #busyTries = 0;
  #isClosed = false;

  constructor(database: DatabaseSync, settings: StoreSettings) {
    this.database = database;
    this.clock = settings.clock;
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

  /** For those who only read; who writes is told. */
  time(): Time {
    return this.look((now, wall) => ({ now, wall }));
  }

  /**
   * Prepared once, however often it is asked for. A limit is written as `? + 0`: SQLite looks into a bare one to plan with
   * it, and parses the statement again each time.
   */
  prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** The same, with rows as arrays: many columns are read twice as fast. */
  prepareRows(sql: string): StatementSync {
    const statement = this.database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  }

  /**
   * Does `work` in a transaction, which others may share, and resolves when it is committed. What it throws of ours is a
   * refusal: it must not have written anything by then. Delays and leases count from `now`, the store's time; `wall` is the
   * time of day, for what people read.
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

  /** Reads with one statement. */
  look<T>(work: (now: number, wall: number) => T): T {
    if (this.#isClosed) throw closed(this.#settings.file);
    try {
      const { now, wall } = this.#time.read();
      return work(now, wall);
    } catch (error) {
      throw toSqliteError(error, this.#settings.file);
    }
  }

  /** Reads several things as of one moment. */
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

  /** Called once the transaction that is under way is committed; not if it is undone. */
  afterCommit(callback: () => void): void {
    this.#afterCommit.push(callback);
  }

  /** Called when a transaction was undone: what was remembered of it must be forgotten. */
  onRollback(callback: () => void): void {
    this.#rollbacks.push(callback);
  }

  /** Writes what waits, then closes. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#queue.length > 0) this.#flush();
    this.#isClosed = true;
    this.clock.clear(this.#retry);
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
      // One bad job must not take its neighbours with it.
      if (jobs.length > 1) for (const job of jobs) job.isAlone = true;
      else if (!this.#isWorthAnotherTry(jobs[0]!, error)) {
        this.#queue.shift()?.reject(toSqliteError(error, this.#settings.file));
      }
    }
    this.#goOn();
  }

  /** A full disk is often full of our own log: what is in it already is in the file, and the log can begin anew. */
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
      // After the first is among them: it is told where the clock cannot be read or written.
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
    // Some errors have ended the transaction already.
    if (this.database.isTransaction) this.database.exec('ROLLBACK');
    this.#afterCommit = [];
    for (const callback of this.#rollbacks) callback();
  }

  #goOn(): void {
    if (this.#queue.length === 0 || this.#isScheduled) return;
    this.#isScheduled = true;
    later(() => this.#flush());
  }

  /** False: another process is writing, and an alarm is set to look again. */
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
      this.clock.set(this.#retry, now + busyDelay(this.#busyTries, 0, random(), 0));
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

class Retry extends Alarm {
  readonly ring: () => void;
  constructor(ring: () => void) {
    super();
    this.ring = ring;
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
