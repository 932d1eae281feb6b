import type { ProcessedMark } from '@holdfast/contracts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

/**
 * Marks (records that a handler has handled an event) are removed together if the ids of their events begin
 * with the same five digits. These digits of a time-ordered id change every three days.
 */
const prefixLength = 5;
const hourMs = 3_600_000;
const seven = 0x37;
const dash = 0x2d;

/**
 * Stores marks: records that a handler has handled an event. The marks of about three days form a bucket, and
 * are removed together.
 */
export class Marks {
  readonly #keepMs: number;
  /** The ids of handlers, by name. A rollback clears this cache, because it may have removed a handler. */
  readonly #handlers = new Map<string, number>();
  /**
   * When each bucket expires (epoch ms by the store's clock), by handler and first digits of the event ids.
   */
  readonly #buckets = new Map<string, number>();
  readonly #handler;
  readonly #addHandler;
  readonly #put;
  readonly #putMany;
  readonly #putOdd;
  readonly #find;
  readonly #findMany;
  readonly #findOdd;
  readonly #keepBucket;
  readonly #overdue;
  readonly #forget;
  readonly #forgetBucket;
  readonly #forgetOdd;

  constructor(store: Store, keepMs: number) {
    this.#keepMs = keepMs;
    store.onRollback(() => this.forgetWritten());
    this.#handler = store.prepare('SELECT id FROM holdfast_handler WHERE name = ?');
    this.#addHandler = store.prepare('INSERT INTO holdfast_handler (name) VALUES (?)');
    this.#put = store.prepare('INSERT OR IGNORE INTO holdfast_mark VALUES (?, ?)');
    this.#putMany = store.prepare(`
      INSERT OR IGNORE INTO holdfast_mark
      SELECT ?1, id FROM holdfast_event WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?3`);
    this.#putOdd = store.prepare('INSERT OR IGNORE INTO holdfast_odd_mark VALUES (?, ?, ?)');
    this.#find = store.prepare('SELECT 1 FROM holdfast_mark WHERE handler = ? AND event_id = ?');
    this.#findMany = store.prepare(`
      SELECT each.key FROM json_each(?2) each
      CROSS JOIN holdfast_mark mark ON mark.handler = ?1 AND mark.event_id = each.value`);
    this.#findOdd = store.prepare('SELECT 1 FROM holdfast_odd_mark WHERE handler = ? AND event_id = ?');
    this.#keepBucket = store.prepare(`
      INSERT INTO holdfast_mark_bucket VALUES (?1, ?2, ?3)
      ON CONFLICT DO UPDATE SET removed_at = max(removed_at, ?3)`);
    this.#overdue = store.prepare(
      'SELECT handler, prefix FROM holdfast_mark_bucket WHERE removed_at <= ? LIMIT 1',
    );
    this.#forget = store.prepare(`
      DELETE FROM holdfast_mark WHERE handler = ?1 AND event_id IN (
        SELECT event_id FROM holdfast_mark WHERE handler = ?1 AND event_id >= ?2 AND event_id < ?2 || 'g' LIMIT ?3 + 0)`);
    this.#forgetBucket = store.prepare('DELETE FROM holdfast_mark_bucket WHERE handler = ? AND prefix = ?');
    this.#forgetOdd = store.prepare(`
      DELETE FROM holdfast_odd_mark WHERE (handler, event_id) IN (
        SELECT handler, event_id FROM holdfast_odd_mark WHERE removed_at <= ? LIMIT ? + 0)`);
  }

  /**
   * Returns for each mark whether it is stored. If all marks have the same handler and time-ordered event
   * ids, one SQL statement reads them all.
   */
  have(marks: readonly ProcessedMark[]): boolean[] {
    const [first] = marks;
    const isUniform = marks.every(
      ({ handler, eventId }) => handler === first?.handler && isTimeOrdered(eventId),
    );
    if (!first || !isUniform) return marks.map((mark) => this.#has(mark));
    const answers: boolean[] = new Array(marks.length).fill(false);
    const id = this.#knownHandler(first.handler);
    if (id === undefined) return answers;
    const found = this.#findMany.all(id, JSON.stringify(marks.map(({ eventId }) => eventId)));
    for (const { key } of found) answers[Number(key)] = true;
    return answers;
  }

  #has({ handler, eventId }: ProcessedMark): boolean {
    const id = this.#knownHandler(handler);
    if (id === undefined) return false;
    const find = isTimeOrdered(eventId) ? this.#find : this.#findOdd;
    return find.get(id, eventId) !== undefined;
  }

  /** Writes a mark. Returns true if the mark is new. Call it within a transaction. */
  write({ handler, eventId }: ProcessedMark, now: number): boolean {
    const id = this.#handlerId(handler);
    if (!isTimeOrdered(eventId)) {
      return this.#putOdd.run(id, eventId, toStoredMs(now + this.#keepMs)).changes === 1;
    }
    this.#keep(id, eventId.slice(0, prefixLength), now);
    return this.#put.run(id, eventId).changes === 1;
  }

  /**
   * Writes marks for the events in `seqs` (JSON) that the lease still holds. Returns false, and writes
   * nothing, if an id is not time-ordered.
   */
  writeMany(
    handler: string,
    eventIds: readonly string[],
    seqs: string,
    leaseId: number,
    now: number,
  ): boolean {
    if (!eventIds.every(isTimeOrdered)) return false;
    const id = this.#handlerId(handler);
    let prefix = '';
    for (const eventId of eventIds) {
      if (prefix !== '' && eventId.startsWith(prefix)) continue;
      prefix = eventId.slice(0, prefixLength);
      this.#keep(id, prefix, now);
    }
    this.#putMany.run(id, seqs, leaseId);
    return true;
  }

  /** Removes at most `limit` expired marks and returns how many. Call it within a transaction. */
  sweep(now: number, limit: number): number {
    let swept = Number(this.#forgetOdd.run(now, limit).changes);
    while (swept < limit) {
      const bucket = this.#overdue.get(now);
      if (!bucket) break;
      const { handler, prefix } = bucket;
      const gone = Number(this.#forget.run(handler!, prefix!, limit - swept).changes);
      swept += gone;
      if (swept < limit) this.#forgetBucket.run(handler!, prefix!);
    }
    return swept;
  }

  /** Call it after a rollback: the caches may have rows that are not in the file. */
  forgetWritten(): void {
    this.#handlers.clear();
    this.#buckets.clear();
  }

  #knownHandler(name: string): number | undefined {
    const id = this.#handlers.get(name) ?? this.#handler.get(name)?.id;
    return id === undefined ? undefined : Number(id);
  }

  #handlerId(name: string): number {
    const known = this.#handlers.get(name);
    if (known !== undefined) return known;
    const id = this.#knownHandler(name) ?? this.#addHandler.run(name).lastInsertRowid;
    this.#handlers.set(name, Number(id));
    return Number(id);
  }

  /**
   * Keeps the bucket until its newest mark expires. To save writes, the row of the bucket is written about
   * once an hour.
   */
  #keep(handler: number, prefix: string, now: number): void {
    const name = `${handler}/${prefix}`;
    const neededUntil = now + this.#keepMs;
    if ((this.#buckets.get(name) ?? 0) >= neededUntil) return;
    const until = toStoredMs(neededUntil + Math.min(hourMs, this.#keepMs / 8));
    this.#keepBucket.run(handler, prefix, until);
    this.#buckets.set(name, until);
  }
}

function isTimeOrdered(id: string): boolean {
  return (
    id.length === 36 && id.charCodeAt(14) === seven && id.charCodeAt(8) === dash && id.charCodeAt(13) === dash
  );
}
