import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Numbers that a lone writer reserves: most transactions then need not write the row with the count. */
const reserved = 4096;

/**
 * Numbers that grow with every transaction of every process: they give events of a key their order. One for each connection, used
 * within a transaction.
 */
export class Sequence {
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  #next = 1;
  /** The last number that is ours. If the row has the same, no other process has taken any since. */
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

  /** After a rollback: the numbers are no longer ours. */
  forget(): void {
    this.#last = 0;
  }
}
