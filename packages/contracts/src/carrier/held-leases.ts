import type { Lease } from '../envelope.ts';
import type { Entry } from './backlog.ts';

/**
 * The leased events of this process, by lease token. A settlement (such as an acknowledgement) with an
 * unknown token is refused.
 */
export class HeldLeases<Handle> {
  readonly #held = new Map<string, Entry<Handle>>();
  readonly #prefix: string;
  #last = 0;

  constructor(name: string) {
    this.#prefix = `carrier/${name}/`;
  }

  /** Returns false for a lease of the store beside the message broker. */
  isOurs({ token }: Lease): boolean {
    return token.startsWith(this.#prefix);
  }

  lease(topic: string, entry: Entry<Handle>, endsAt: number): Lease {
    const token = `${this.#prefix}${++this.#last}`;
    entry.lease = { token, endsAt };
    entry.written = undefined;
    this.#held.set(token, entry);
    return { topic, id: entry.event.id, token };
  }

  find({ topic, id, token }: Lease, now: number): Entry<Handle> | undefined {
    const entry = this.#held.get(token);
    if (!entry || entry.event.topic !== topic || entry.event.id !== id) return undefined;
    return isOver(entry, now) ? undefined : entry;
  }

  end(entry: Entry<Handle>): void {
    if (entry.lease) this.#held.delete(entry.lease.token);
    entry.lease = undefined;
  }
}

/** Returns true if the lease has ended, or the server may have delivered the message to another process. */
export function isOver({ lease, heldUntil }: Entry, now: number): boolean {
  return (lease !== undefined && lease.endsAt <= now) || heldUntil <= now;
}
