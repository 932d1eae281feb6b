import {
  assertReport,
  forgottenAfterMs,
  type Presence,
  type PresentProcess,
  type ProcessReport,
  processesMax,
  sortedProcesses,
} from '@holdfast/contracts';
import type { Store } from './store.ts';

export class SqlitePresence implements Presence {
  readonly #store: Store;
  readonly #put;
  readonly #remove;
  readonly #forget;
  readonly #trim;
  readonly #present;

  constructor(store: Store) {
    this.#store = store;
    this.#put = store.prepare('INSERT OR REPLACE INTO holdfast_process VALUES (?, ?, ?)');
    this.#remove = store.prepare('DELETE FROM holdfast_process WHERE id = ?');
    this.#forget = store.prepare(`
      DELETE FROM holdfast_process WHERE rowid IN (
        SELECT rowid FROM holdfast_process WHERE heard_at <= ? LIMIT ? + 0)`);
    this.#trim = store.prepare(`
      DELETE FROM holdfast_process WHERE rowid IN (
        SELECT rowid FROM holdfast_process ORDER BY heard_at DESC, rowid DESC LIMIT -1 OFFSET ${processesMax})`);
    this.#present = store.prepare('SELECT heard_at, report FROM holdfast_process WHERE heard_at > ?');
  }

  async report(process: ProcessReport): Promise<void> {
    const json = assertReport(process);
    await this.#store.write((now) => {
      this.sweep(now, processesMax);
      this.#put.run(process.id, now, json);
      this.#trim.run();
    });
  }

  async leave(id: string): Promise<void> {
    await this.#store.write(() => {
      this.#remove.run(id);
    });
  }

  async processes(): Promise<readonly PresentProcess[]> {
    return this.#store.look((now, wall) =>
      sortedProcesses(
        this.#present.all(now - forgottenAfterMs).map(({ heard_at, report }): PresentProcess => {
          return { ...JSON.parse(String(report)), heardAt: Number(heard_at) + wall - now };
        }),
      ),
    );
  }

  /** Removes at most `limit` reports that are older than `forgottenAfterMs`. Call it within a transaction. */
  sweep(now: number, limit: number): number {
    return Number(this.#forget.run(now - forgottenAfterMs, limit).changes);
  }
}
