import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** What is taken in advance by the only one who writes: then most transactions need not touch the page with the count. */
const spare = 4096;

/**
 * Counts that grow with every transaction, whichever process makes it: events of a key keep their order by them. One for
 * each connection, used within a transaction.
 */
export class Sequence {
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  #next = 1;
  /** The end of what is ours. As long as it is the end of all, no one else has taken any. */
  #last = 0;

  constructor(database: DatabaseSync) {
    this.#read = database.prepare('SELECT last FROM holdfast_meta');
    this.#write = database.prepare('UPDATE holdfast_meta SET last = ?');
  }

  /** The first of so many. */
  take(count: number): number {
    const last = Number(this.#read.get()?.last);
    const isOnlyOne = last === this.#last;
    if (!isOnlyOne || this.#next + count - 1 > last) {
      this.#next = last + 1;
      this.#last = last + count + (isOnlyOne ? spare : 0);
      this.#write.run(this.#last);
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** The transaction was undone, and with it what was taken. */
  forget(): void {
    this.#last = 0;
  }
}
