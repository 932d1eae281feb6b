import type { Doorbells } from './doorbells.ts';
import { queueOf } from './ready-queue.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';
import type { Topic, Topics } from './topics.ts';

/** Appointments that one transaction makes due. */
const madeDueTogether = 1000;

/** SQL for the time of the first appointment of a topic. */
export function firstAppointment(topicId: string): string {
  return `(
    SELECT wall_due_at FROM holdfast_appointment WHERE topic = ${topicId} ORDER BY wall_due_at LIMIT 1)`;
}

/**
 * Events that were published with a time of day. They are never due by the store's clock; when the wall clock reaches their time,
 * they are made due.
 */
export class Appointments {
  readonly #topics: Topics;
  readonly #bells: Doorbells;
  readonly #first;
  readonly #of;
  readonly #anyDue;
  readonly #due;
  readonly #remove;
  readonly #moveUp;
  readonly #makeDue;

  constructor(store: Store, topics: Topics, bells: Doorbells) {
    this.#topics = topics;
    this.#bells = bells;
    this.#first = store.prepare(`SELECT ${firstAppointment('?')} AS first_at`);
    this.#of = store.prepare('SELECT wall_due_at FROM holdfast_appointment WHERE seq = ?');
    this.#anyDue = store.prepare('SELECT 1 FROM holdfast_appointment WHERE wall_due_at <= ? LIMIT 1');
    this.#due = store.prepare(`
      SELECT appointment.*, event.due_at FROM holdfast_appointment appointment
      LEFT JOIN holdfast_event event ON event.seq = appointment.seq
      WHERE wall_due_at <= ? ORDER BY wall_due_at LIMIT ? + 0`);
    this.#remove = store.prepare('DELETE FROM holdfast_appointment WHERE seq = ?');
    // Only an event in the ready queue has a row here: a follower and one under quarantine have none.
    this.#moveUp = store.prepare(`
      UPDATE holdfast_ready SET due_at = ?1 WHERE topic = ?2 AND due_at = ?3 AND seq = ?4
        AND queue = (SELECT ${queueOf} FROM holdfast_event event WHERE seq = ?4)`);
    this.#makeDue = store.prepare('UPDATE holdfast_event SET due_at = ? WHERE seq = ?');
  }

  /** By the wall clock. Infinity: the topic has none. */
  firstOf({ id }: Topic): number {
    return Number(this.#first.get(id)?.first_at ?? Infinity);
  }

  of(seq: number): number | undefined {
    const row = this.#of.get(seq);
    return row && Number(row.wall_due_at);
  }

  haveCome(wall: number): boolean {
    return this.#anyDue.get(wall) !== undefined;
  }

  /** Within a transaction: makes at most `madeDueTogether` events due, the longest overdue first. */
  catchUp({ now, wall }: Time): void {
    for (const row of this.#due.all(wall, madeDueTogether)) {
      const [seq, topic] = [Number(row.seq), Number(row.topic)];
      this.makeDue(topic, seq, Number(row.due_at), toStoredMs(Number(row.wall_due_at) - wall + now));
      this.#bells.ringAfterCommit(this.#topics.nameOf(topic));
    }
  }

  /** Within a transaction: an event that is due at `dueAt`, or at an appointment, is due at `newDueAt` instead. */
  makeDue(topicId: number, seq: number, dueAt: number, newDueAt: number): void {
    this.#moveUp.run(newDueAt, topicId, dueAt, seq);
    this.#makeDue.run(newDueAt, seq);
    this.#remove.run(seq);
  }
}
