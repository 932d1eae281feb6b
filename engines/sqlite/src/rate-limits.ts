import type { RateAnswer, RateLimits, RateRequest } from '@holdfast/contracts';
import { gcraTake, gcraWait } from 'holdfast/machines';
import type { Store } from './store.ts';

/** A sweep reads at most 10 keys for each key that it may remove. */
const looksForEach = 10;

/** GCRA rate limits. Each key stores one number: the time at which all its tokens are available again. */
export class SqliteRateLimits implements RateLimits {
  readonly #store: Store;
  readonly #tat;
  readonly #put;
  readonly #forget;
  readonly #lastOf;
  readonly #clear;
  /**
   * The last key that the sweep has read. After the last key of the table, the sweep continues with the first
   * one.
   */
  #sweptTo = '';

  constructor(store: Store) {
    this.#store = store;
    this.#tat = store.prepare('SELECT tat FROM holdfast_rate WHERE key = ?');
    this.#put = store.prepare('INSERT OR REPLACE INTO holdfast_rate VALUES (?, ?)');
    this.#forget = store.prepare('DELETE FROM holdfast_rate WHERE key = ?');
    this.#lastOf = store.prepare(
      'SELECT max(key) AS last FROM (SELECT key FROM holdfast_rate WHERE key > ? ORDER BY key LIMIT ? + 0)',
    );
    this.#clear = store.prepare(`
      DELETE FROM holdfast_rate WHERE key IN (
        SELECT key FROM holdfast_rate WHERE key > ? AND key <= ? AND tat <= ? LIMIT ? + 0)`);
  }

  async take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]> {
    return this.#store.write((now) => requests.map((request) => this.#answer(request, now)));
  }

  async forget(keys: readonly string[]): Promise<void> {
    await this.#store.write(() => {
      for (const key of keys) this.#forget.run(key);
    });
  }

  /** Removes at most `limit` keys that have all their tokens again. Call it within a transaction. */
  sweep(now: number, limit: number): number {
    const last = this.#lastOf.get(this.#sweptTo, limit * looksForEach)?.last;
    const from = this.#sweptTo;
    this.#sweptTo = typeof last === 'string' ? last : '';
    return typeof last === 'string' ? Number(this.#clear.run(from, last, now, limit).changes) : 0;
  }

  #answer(request: RateRequest, now: number): RateAnswer {
    const takes = request.map((take) => ({ ...take, cost: take.cost ?? 1, tat: this.#read(take.key) }));
    const waitMs = Math.max(0, ...takes.map((take) => gcraWait(take, take.tat, now, take.cost)));
    const allowed = waitMs === 0;
    const left = takes.map((take) => {
      const { key, ratePerMs, burst, cost } = take;
      // Read again, because a request may contain the same key twice.
      let tat = this.#read(key);
      if (allowed && cost > 0) {
        tat = gcraTake(take, tat, now, cost);
        this.#put.run(key, tat);
      }
      const fullInMs = Math.max(0, tat - now);
      return { tokens: Math.max(0, burst - fullInMs * ratePerMs), fullInMs };
    });
    return { allowed, waitMs, left };
  }

  #read(key: string): number {
    return Number(this.#tat.get(key)?.tat ?? 0);
  }
}
