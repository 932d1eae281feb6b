import { Timer } from 'holdfast';
import type { Database } from './database.ts';

const stateText = `SELECT a.id, concat_ws(' ', a.state, a.revision, a.ended_at, s.steps, s.latest) FROM unnest($1::text[]) AS w(id)
  JOIN {schema}.assembly a ON a.id = w.id,
  LATERAL (SELECT count(*) AS steps, sum(step_order * 16 + state + attempts) AS latest FROM {schema}.assembly_step s WHERE s.seq = a.seq) AS s`;

/**
 * The ms between two polls for changes by other processes: `first` after a change, up to `most` while nothing
 * changes.
 */
const askMs = { first: 100, most: 1000 };
const idsMax = 1000;

interface Watched {
  readonly rings: Set<() => void>;
  state: string | undefined;
}

/**
 * Calls listeners of an assembly when it may have changed. Changes by other processes are found by polling.
 */
export class JournalWatches {
  readonly #database: Database;
  readonly #watched = new Map<string, Watched>();
  readonly #timer: Timer;
  #waitMs = askMs.first;
  #isClosed = false;

  constructor(database: Database) {
    this.#database = database;
    this.#timer = new Timer(database.clock, () => void this.#ask());
  }

  watch(id: string, ring: () => void): () => void {
    const watched = this.#watched.get(id) ?? { rings: new Set(), state: undefined };
    this.#watched.set(id, watched);
    watched.rings.add(ring);
    this.#waitMs = askMs.first;
    if (!this.#timer.isSet && !this.#isClosed) this.#timer.setIn(this.#waitMs);
    return () => {
      watched.rings.delete(ring);
      if (watched.rings.size > 0 || this.#watched.get(id) !== watched) return;
      this.#watched.delete(id);
      if (this.#watched.size === 0) this.#timer.clear();
    };
  }

  /** A listener may call the journal, so a microtask lets the current call end first. */
  ring(id: string): void {
    for (const ring of this.#watched.get(id)?.rings ?? []) queueMicrotask(ring);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer.clear();
  }

  async #ask(): Promise<void> {
    const ids = [...this.#watched.keys()].slice(0, idsMax);
    // If there are more ids, the next poll starts with the others.
    if (ids.length === idsMax) for (const id of ids) this.#moveToEnd(id);
    let hasChanged = false;
    try {
      for (const [id, state] of await this.#database.rows(stateText, [ids])) {
        const watched = this.#watched.get(id as string);
        if (!watched || watched.state === state) continue;
        watched.state = state as string;
        hasChanged = true;
        this.ring(id as string);
      }
    } catch {
      // The server is down. Other calls report that, and the next poll tries again.
    }
    this.#waitMs = hasChanged ? askMs.first : Math.min(askMs.most, this.#waitMs * 1.5);
    if (!this.#isClosed && this.#watched.size > 0) this.#timer.setIn(this.#waitMs);
  }

  #moveToEnd(id: string): void {
    const watched = this.#watched.get(id)!;
    this.#watched.delete(id);
    this.#watched.set(id, watched);
  }
}
