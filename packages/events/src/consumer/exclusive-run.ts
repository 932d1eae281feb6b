/** A consumer that shares an `ExclusiveRun` with others. */
export interface Participant {
  /** True: the consumer holds no leased event. */
  readonly isIdle: boolean;
  /** Called when the consumer may lease again. */
  poll(): void;
}

/**
 * A lock with which one consumer handles an event while no other consumer of the process holds any event. It is used
 * for suspects: events that were being handled when a process died. If a suspect crashes this process too, no other
 * event is affected.
 */
export class ExclusiveRun {
  readonly #participants = new Set<Participant>();
  #owner: Participant | undefined;

  join(participant: Participant): void {
    this.#participants.add(participant);
  }

  leave(participant: Participant): void {
    this.#participants.delete(participant);
    this.release(participant);
    this.notifyOwner();
  }

  /** True: another consumer has the lock or waits for it, so `participant` must not lease events. */
  isHeldByOther(participant: Participant): boolean {
    return this.#owner !== undefined && this.#owner !== participant;
  }

  /**
   * Requests the lock. True: `participant` has the lock, and all consumers are idle. While `participant` waits for the
   * lock, the other consumers lease nothing, and `participant.poll` is called when one of them becomes idle.
   */
  tryAcquire(participant: Participant): boolean {
    this.#owner ??= participant;
    if (this.#owner !== participant) return false;
    for (const each of this.#participants) if (!each.isIdle) return false;
    return true;
  }

  release(participant: Participant): void {
    if (this.#owner !== participant) return;
    this.#owner = undefined;
    for (const each of this.#participants) each.poll();
  }

  /** Call it when a participant has become idle. */
  notifyOwner(): void {
    this.#owner?.poll();
  }
}

/** The default lock, which all consumers of this process share. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
