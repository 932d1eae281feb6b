import type { Doorbells } from './doorbells.ts';
import { queueOf } from './ready-queue.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';
import type { Topic, Topics } from './topics.ts';

/** One transaction makes at most this many events due, so that the transaction is short. */
const madeDueTogether = 1000;

/** Returns SQL that selects the earliest wall-clock due time (`dueAt`) of the topic's events. */
export function firstAppointment(topicId: string): string {
  return `(
    SELECT wall_due_at FROM holdfast_appointment WHERE topic = ${topicId} ORDER BY wall_due_at LIMIT 1)`;
}

/**
 * Events that are due at a wall-clock time (`dueAt`). The store's own clock may differ from the wall clock,
 * so `catchUp` compares these events with the wall clock.
 */
export class Appointments {
  readonly #topics: Topics;
  readonly #bells: Doorbells;
  readonly #first;
  readonly #anyDue;
  readonly #due;
  readonly #remove;
  readonly #moveUp;
  readonly #makeDue;

  constructor(store: Store, topics: Topics, bells: Doorbells) {
    this.#topics = topics;
    this.#bells = bells;
    this.#first = store.prepare(`SELECT ${firstAppointment('?')} AS first_at`);
    this.#anyDue = store.prepare('SELECT 1 FROM holdfast_appointment WHERE wall_due_at <= ? LIMIT 1');
    this.#due = store.prepare(`
      SELECT appointment.*, event.due_at FROM holdfast_appointment appointment
      LEFT JOIN holdfast_event event ON event.seq = appointment.seq
      WHERE wall_due_at <= ? ORDER BY wall_due_at LIMIT ? + 0`);
    this.#remove = store.prepare('DELETE FROM holdfast_appointment WHERE seq = ?');
    // While the event waits for an earlier event of its key, or is in quarantine, it has no row in
    // `holdfast_ready`.
    this.#moveUp = store.prepare(`
      UPDATE holdfast_ready SET due_at = ?1 WHERE topic = ?2 AND due_at = ?3 AND seq = ?4
        AND queue = (SELECT ${queueOf} FROM holdfast_event event WHERE seq = ?4)`);
    this.#makeDue = store.prepare('UPDATE holdfast_event SET due_at = ? WHERE seq = ?');
  }

  firstOf({ id }: Topic): number {
    return Number(this.#first.get(id)?.first_at ?? Infinity);
  }

  haveCome(wall: number): boolean {
    return this.#anyDue.get(wall) !== undefined;
  }

  /** Makes events due whose wall-clock time has come. Call it within a transaction. */
  catchUp({ now, wall }: Time): void {
    for (const row of this.#due.all(wall, madeDueTogether)) {
      const [seq, topic] = [Number(row.seq), Number(row.topic)];
      this.makeDue(topic, seq, Number(row.due_at), toStoredMs(Number(row.wall_due_at) - wall + now));
      this.#bells.ringAfterCommit(this.#topics.nameOf(topic));
    }
  }

  makeDue(topicId: number, seq: number, dueAt: number, newDueAt: number): void {
    this.#moveUp.run(newDueAt, topicId, dueAt, seq);
    this.#makeDue.run(newDueAt, seq);
    this.#remove.run(seq);
  }
}
