import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * How many numbers a process reserves in advance, so that most transactions need not store the last number.
 */
const reserved = 4096;

/** Returns numbers that increase with every transaction of every process. Use it only within a transaction. */
export class Sequence {
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  #next = 1;
  /**
   * The last number that this process has reserved. If the file contains another number, another process has
   * reserved numbers since then.
   */
  #last = 0;

  constructor(database: DatabaseSync) {
    this.#read = database.prepare('SELECT last FROM holdfast_meta');
    this.#write = database.prepare('UPDATE holdfast_meta SET last = ?');
  }

  take(count: number): number {
    const last = Number(this.#read.get()?.last);
    const isOnlyOne = last === this.#last;
    if (!isOnlyOne || this.#next + count - 1 > last) {
      this.#next = last + 1;
      this.#last = last + count + (isOnlyOne ? reserved : 0);
      this.#write.run(this.#last);
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** Call it after a rollback: another process may take the reserved numbers. */
  forget(): void {
    this.#last = 0;
  }
}
