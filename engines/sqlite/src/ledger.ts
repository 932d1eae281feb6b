import type { DatabaseSync } from 'node:sqlite';
import {
  type Begun,
  type Claim,
  type Completion,
  commitFailed,
  type Hold,
  LEASE_LOST,
  type Ledger,
  type Payload,
  type SettlementResult,
  TOOK,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { Marks } from './marks.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** How many expired keys are removed when a scope is full. */
const clearedTogether = 100;

export class SqliteLedger implements Ledger<DatabaseSync> {
  readonly #store: Store;
  readonly #marks: Marks;
  readonly #find;
  readonly #held;
  readonly #add;
  readonly #takeOver;
  readonly #complete;
  readonly #extend;
  readonly #remove;
  readonly #scope;
  readonly #addToScope;
  readonly #clearScope;
  readonly #overdue;
  readonly #unheld;

  constructor(store: Store, marks: Marks) {
    this.#store = store;
    this.#marks = marks;
    this.#find = store.prepare('SELECT * FROM holdfast_key WHERE scope = ? AND key = ?');
    this.#held = store.prepare(`
      SELECT number FROM holdfast_key
      WHERE scope = ? AND key = ? AND token = ? AND done = 0 AND lease_ends_at > ?`);
    this.#add = store.prepare(`
      INSERT INTO holdfast_key (scope, key, fingerprint, token, lease_ends_at, attempt, done, record, removed_at)
      VALUES (?, ?, ?, ?, ?, 1, 0, NULL, ?)`);
    this.#takeOver = store.prepare(`
      UPDATE holdfast_key SET token = ?2, lease_ends_at = ?3, removed_at = ?4, attempt = attempt + 1
      WHERE number = ?1`);
    this.#complete = store.prepare(
      'UPDATE holdfast_key SET done = 1, record = ?2, removed_at = ?3 WHERE number = ?1',
    );
    this.#extend = store.prepare(
      'UPDATE holdfast_key SET lease_ends_at = ?2, removed_at = max(removed_at, ?2) WHERE number = ?1',
    );
    this.#remove = store.prepare('DELETE FROM holdfast_key WHERE number = ? RETURNING scope');
    this.#scope = store.prepare('SELECT keys FROM holdfast_scope WHERE name = ?');
    this.#addToScope = store.prepare(`
      INSERT INTO holdfast_scope VALUES (?1, ?2) ON CONFLICT DO UPDATE SET keys = keys + ?2`);
    this.#clearScope = store.prepare('DELETE FROM holdfast_scope WHERE name = ? AND keys <= 0');
    this.#unheld = store.prepare(
      'SELECT number FROM holdfast_key WHERE scope = ? AND (done = 1 OR lease_ends_at <= ?)',
    );
    this.#overdue = store.prepare('SELECT number FROM holdfast_key WHERE removed_at <= ? LIMIT ? + 0');
  }

  async begin(claims: readonly Claim[]): Promise<readonly Begun[]> {
    return this.#store.write((now) => claims.map((claim) => this.#begin(claim, now)));
  }

  async complete(completions: readonly Completion<DatabaseSync>[]): Promise<readonly SettlementResult[]> {
    return this.#store.write((now) => completions.map((completion) => this.#completeOne(completion, now)));
  }

  async release(holds: readonly Hold[]): Promise<readonly boolean[]> {
    return this.#store.write((now) =>
      holds.map((hold) => {
        const number = this.#numberOf(hold, now);
        if (number !== undefined) this.#forget(number);
        return number !== undefined;
      }),
    );
  }

  async extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]> {
    return this.#store.write((now) =>
      holds.map((hold) => {
        const number = this.#numberOf(hold, now);
        if (number !== undefined) this.#extend.run(number, toStoredMs(now + leaseMs));
        return number !== undefined;
      }),
    );
  }

  async purge(scope: string): Promise<number> {
    return this.#store.write((now) => {
      const unheld = this.#unheld.all(scope, now);
      for (const { number } of unheld) this.#forget(Number(number));
      return unheld.length;
    });
  }

  async mark(marks: Parameters<Ledger['mark']>[0]): Promise<readonly boolean[]> {
    return this.#store.write((now) => marks.map((mark) => this.#marks.write(mark, now)));
  }

  async isMarked(marks: Parameters<Ledger['isMarked']>[0]): Promise<readonly boolean[]> {
    return this.#store.look(() => this.#marks.have(marks));
  }

  /** Removes at most `limit` expired keys. Call it within a transaction. */
  sweep(now: number, limit: number): number {
    const overdue = this.#overdue.all(now, limit);
    for (const { number } of overdue) this.#forget(Number(number));
    return overdue.length;
  }

  #begin(claim: Claim, now: number): Begun {
    const { scope, key, fingerprint, leaseMs, keepMs = dayMs, liveMax, whenLost = 'tell' } = claim;
    let entry = this.#find.get(scope, key);
    if (entry && Number(entry.removed_at) <= now) {
      this.#forget(Number(entry.number));
      entry = undefined;
    }
    if (entry && entry.fingerprint !== fingerprint) return { kind: 'mismatch' };
    if (entry?.done === 1) {
      return { kind: 'done', record: (entry.record as Payload | null) ?? undefined };
    }
    const leaseLeftMs = entry ? Number(entry.lease_ends_at) - now : 0;
    if (leaseLeftMs > 0) return { kind: 'running', retryAfterMs: leaseLeftMs };
    if (entry && whenLost === 'tell') return { kind: 'unknown' };
    if (!entry && liveMax !== undefined && this.#isFull(scope, liveMax, now)) return { kind: 'full' };

    const token = this.#store.newId();
    const endsAt = toStoredMs(now + leaseMs);
    const removedAt = toStoredMs(now + Math.max(keepMs, leaseMs));
    if (entry) this.#takeOver.run(entry.number!, token, endsAt, removedAt);
    else {
      this.#add.run(scope, key, fingerprint, token, endsAt, removedAt);
      this.#addToScope.run(scope, 1);
    }
    const attempt = Number(entry?.attempt ?? 0) + 1;
    return { kind: 'acquired', hold: { scope, key, token }, attempt };
  }

  #completeOne({ hold, record, keepMs, commit }: Completion<DatabaseSync>, now: number): SettlementResult {
    const number = this.#numberOf(hold, now);
    if (number === undefined) return LEASE_LOST;
    const removedAt = toStoredMs(now + keepMs);
    if (!commit) {
      this.#complete.run(number, record ?? null, removedAt);
      return TOOK;
    }
    const { database } = this.#store;
    database.exec('SAVEPOINT holdfast_completion');
    try {
      const answer = commit(database);
      if (answer instanceof Promise) {
        answer.catch(() => {});
        throw new OptionsError('commit', 'a promise', 'a function that is done when it returns');
      }
      this.#complete.run(number, answer ?? null, removedAt);
      return TOOK;
    } catch (error) {
      if (!database.isTransaction) throw error;
      database.exec('ROLLBACK TO holdfast_completion');
      return commitFailed(error);
    } finally {
      if (database.isTransaction) database.exec('RELEASE holdfast_completion');
    }
  }

  #numberOf({ scope, key, token }: Hold, now: number): number | undefined {
    const row = this.#held.get(scope, key, token, now);
    return row && Number(row.number);
  }

  /**
   * Returns true if the scope has `liveMax` keys, even after expired ones were removed. `holdfast_scope`
   * stores the number of keys.
   */
  #isFull(scope: string, liveMax: number, now: number): boolean {
    const isFull = () => Number(this.#scope.get(scope)?.keys ?? 0) >= liveMax;
    return isFull() && (this.sweep(now, clearedTogether) === 0 || isFull());
  }

  #forget(number: number): void {
    const scope = this.#remove.get(number)?.scope;
    if (scope === undefined) return;
    this.#addToScope.run(scope, -1);
    this.#clearScope.run(scope);
  }
}
