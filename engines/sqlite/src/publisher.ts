import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { type NewEvent, type Published, TopicError } from '@holdfast/contracts';
import { errorText, restOf } from './event-row.ts';
import { isHead, queueOf } from './ready-queue.ts';
import { Sequence } from './sequence.ts';
import type { Time } from './store-clock.ts';
import { never, toStoredMs } from './stored-time.ts';
import { seqsOf, type Topic, topicSql, toTopic } from './topics.ts';

/** How many rows one INSERT writes. With ten rows, an event takes a third less time than with one. */
const rowsTogether = 10;

const columns = 'seq, topic, id, payload, type, key, tenant, rest, first_seen_at, order_key, due_at'.split(
  ', ',
);

/**
 * A replayed event replaces the parked event in its row. These columns of the row do not change, because
 * later events of the key wait for that row.
 */
const keptInPlace = new Set(['seq', 'topic', 'id', 'key', 'order_key']);

const insertInto = `INSERT OR IGNORE INTO holdfast_event (${columns}) VALUES `;
const oneRow = `(${columns.map(() => '?')})`;

/** Stores new events through one connection. Call `publish` within a transaction. */
export class Publisher {
  readonly #one: StatementSync;
  readonly #many: StatementSync;
  readonly #topic: StatementSync;
  readonly #sequence: Sequence;
  readonly #enqueue: StatementSync;
  readonly #stored: StatementSync;
  readonly #known: StatementSync;
  readonly #replace: StatementSync;
  readonly #adopt: StatementSync;
  readonly #appoint: StatementSync;
  readonly #move: StatementSync;
  readonly #busy: StatementSync;
  readonly #newId: () => string;
  readonly #values: SQLInputValue[] = new Array(rowsTogether * columns.length).fill(null);

  constructor(database: DatabaseSync, newId: () => string, sequence: Sequence = new Sequence(database)) {
    this.#newId = newId;
    this.#sequence = sequence;
    this.#topic = database.prepare(topicSql);
    this.#one = database.prepare(insertInto + oneRow);
    this.#many = database.prepare(insertInto + Array(rowsTogether).fill(oneRow));
    this.#enqueue = database.prepare(`
      INSERT INTO holdfast_ready
      SELECT topic, ${queueOf}, due_at, seq FROM holdfast_event event
      WHERE seq BETWEEN ? AND ? AND blocking = 0 AND ${isHead}`);
    this.#stored = database.prepare('SELECT seq FROM holdfast_event WHERE seq BETWEEN ? AND ?');
    this.#known = database.prepare('SELECT seq, blocking FROM holdfast_event WHERE id = ? AND topic = ?');
    this.#adopt = database.prepare(`
      UPDATE holdfast_event SET rest = json_set(coalesce(rest, '{}'), '$.replay', ?) WHERE seq = ?`);
    this.#appoint = database.prepare(`
      INSERT INTO holdfast_appointment SELECT seq, topic, ?2 FROM holdfast_event WHERE seq = ?1`);
    this.#move = database.prepare(`
      UPDATE holdfast_event SET attempts = ?, snoozes = ?, next_delay_ms = ?, last_error = ?, story = ?, blocking = ?,
        order_key = CASE WHEN ? THEN order_key END WHERE seq = ?`);
    this.#busy = database.prepare('SELECT 1 FROM holdfast_event WHERE topic = ? AND order_key = ? LIMIT 1');
    const changed = columns.filter((name) => !keptInPlace.has(name));
    this.#replace = database.prepare(`
      UPDATE holdfast_event SET ${changed.map((name) => `${name} = ?`)},
        attempts = 0, snoozes = 0, deaths = 0, next_delay_ms = NULL, blocking = 0, last_error = NULL, story = NULL
      WHERE seq = ?`);
  }

  publish(name: string, events: readonly NewEvent[], time: Time): Published[] {
    const row = this.#topic.get(name);
    if (!row) throw new TopicError(name, 'was never declared');
    if (events.length === 0) return [];
    const topic = toTopic(row);
    const first = seqsOf(topic).from + this.#sequence.take(events.length);
    const last = first + events.length - 1;
    const ids = events.map(({ id }) => id ?? this.#newId());
    const isComplete = this.#insert(topic, events, ids, first, time) === events.length;
    for (let index = 0; index < events.length; index++) this.#keepAttempts(events[index]!, first + index);
    this.#enqueue.run(first, last);
    for (let index = 0; index < events.length; index++) {
      this.#keepAppointment(events[index]!, first + index, time);
    }
    if (isComplete) return ids.map((id) => ({ id, duplicate: false }));

    const stored = new Set(this.#stored.all(first, last).map(({ seq }) => seq));
    return ids.map((id, index) => ({
      id,
      duplicate: !stored.has(first + index) && !this.#takePlace(topic, events[index]!, id, time),
    }));
  }

  /**
   * Stores an event only if its id is already stored, or its key has unsettled events. Returns true for each
   * event that the store now has.
   */
  publishBehind(name: string, events: readonly NewEvent[], time: Time): boolean[] {
    const row = this.#topic.get(name);
    if (!row) throw new TopicError(name, 'was never declared');
    const topic = toTopic(row);
    return events.map((event) => {
      const { id, key } = event;
      const isKnown = id !== undefined && this.#known.get(id, topic.id) !== undefined;
      const isBusy = key !== undefined && this.#busy.get(topic.id, key) !== undefined;
      if (isKnown || isBusy) this.publish(name, [event], time);
      return isKnown || isBusy;
    });
  }

  #insert(topic: Topic, events: readonly NewEvent[], ids: string[], first: number, time: Time): number {
    const values = this.#values;
    const width = columns.length;
    let inserted = 0;
    let index = 0;
    for (; index + rowsTogether <= events.length; index += rowsTogether) {
      for (let row = 0; row < rowsTogether; row++) {
        const at = index + row;
        fill(values, row * width, topic, events[at]!, ids[at]!, first + at, time);
      }
      inserted += Number(this.#many.run(...values).changes);
    }
    for (; index < events.length; index++) {
      fill(values, 0, topic, events[index]!, ids[index]!, first + index, time);
      inserted += Number(this.#one.run(...values.slice(0, width)).changes);
    }
    return inserted;
  }

  /**
   * If the parked event blocks its key, the replayed event takes its row, and so its position in the order of
   * the key. Otherwise returns false.
   */
  #takePlace(topic: Topic, event: NewEvent, id: string, time: Time): boolean {
    const known = this.#known.get(id, topic.id);
    const seq = Number(known?.seq);
    if (known?.blocking !== 1) {
      // The topic already has this event. From now on the event belongs to the replay, which counts its
      // result.
      if (event.past?.replay !== undefined) this.#adopt.run(event.past.replay, seq);
      return false;
    }
    const values: SQLInputValue[] = [];
    fill(values, 0, topic, event, id, seq, time);
    this.#replace.run(...values.filter((_, index) => !keptInPlace.has(columns[index]!)), seq);
    this.#keepAttempts(event, seq);
    this.#enqueue.run(seq, seq);
    this.#keepAppointment(event, seq, time);
    return true;
  }

  #keepAttempts({ past }: NewEvent, seq: number): void {
    if (past?.moved === undefined) return;
    const { attempts = 0, snoozes = 0, nextDelayMs = null, lastError, story = [] } = past.moved;
    const { holdsKey = true, blocking = false } = past.moved;
    this.#move.run(
      ...[attempts, snoozes, nextDelayMs, lastError ? errorText(lastError) : null],
      ...[story.length > 0 ? JSON.stringify(story) : null, blocking ? 1 : 0, holdsKey ? 1 : 0, seq],
    );
  }

  #keepAppointment({ dueAt }: NewEvent, seq: number, { wall }: Time): void {
    if (dueAt !== undefined && dueAt > wall) this.#appoint.run(seq, toStoredMs(dueAt));
  }
}

function fill(
  values: SQLInputValue[],
  at: number,
  topic: Topic,
  event: NewEvent,
  id: string,
  seq: number,
  { now, wall }: Time,
): void {
  const { key = null, past, delayMs, dueAt } = event;
  values[at] = seq;
  values[at + 1] = topic.id;
  values[at + 2] = id;
  values[at + 3] = event.payload;
  values[at + 4] = event.type ?? null;
  values[at + 5] = key;
  values[at + 6] = event.tenant ?? null;
  values[at + 7] = restOf(event, now);
  values[at + 8] = past === undefined ? wall : toStoredMs(past.firstSeenAt);
  values[at + 9] = topic.ordering === 'key' ? key : null;
  if (dueAt !== undefined) values[at + 10] = dueAt > wall ? never : toStoredMs(dueAt - wall + now);
  else values[at + 10] = delayMs === undefined ? now : toStoredMs(now + delayMs);
}
