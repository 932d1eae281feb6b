import { decodeSeqs } from './run-length-seqs.ts';
import type { Store } from './store.ts';
import type { Topic } from './topics.ts';

export interface LeaseOfEvent {
  readonly leaseId: number;
  readonly owner: string;
}

/**
 * Finds the lease of an event, for operators. A lease lists its events, but an event does not name its lease.
 */
export class LeaseIndex {
  readonly #ofTopic;

  constructor(store: Store) {
    this.#ofTopic = store.prepare('SELECT id, owner, seqs FROM holdfast_lease WHERE topic = ?');
  }

  /** Returns the latest lease of each event. A lease is valid only if its id is above the event's `fence`. */
  of(topic: Topic): Map<number, LeaseOfEvent> {
    const found = new Map<number, LeaseOfEvent>();
    for (const { leaseId, owner, seqs } of this.all(topic)) {
      for (const seq of seqs)
        if ((found.get(seq)?.leaseId ?? 0) < leaseId) found.set(seq, { leaseId, owner });
    }
    return found;
  }

  all(topic: Topic): (LeaseOfEvent & { readonly seqs: readonly number[] })[] {
    return this.#ofTopic.all(topic.id).map(({ id, owner, seqs }) => {
      return { leaseId: Number(id), owner: String(owner), seqs: decodeSeqs(String(seqs)) };
    });
  }
}
