import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * How many numbers a process reserves in advance while no other process takes any. So most transactions need not write
 * the row that stores the last number.
 */
const reserved = 4096;

/**
 * Returns numbers that grow with every transaction of every process; they order the events of a key. Each connection
 * has its own `Sequence`, which is used only within a transaction.
 */
export class Sequence {
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  #next = 1;
  /**
   * The last number that this process has reserved. If the stored number is the same, no other process has reserved
   * numbers since then.
   */
  #last = 0;

  constructor(database: DatabaseSync) {
    this.#read = database.prepare('SELECT last FROM holdfast_meta');
    this.#write = database.prepare('UPDATE holdfast_meta SET last = ?');
  }

  /** Takes `count` numbers, and returns the first. */
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

  /** Call this after a rollback: the reservation was undone, so another process may take these numbers. */
  forget(): void {
    this.#last = 0;
  }
}
