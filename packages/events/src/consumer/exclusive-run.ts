export interface Participant {
  /** True: the consumer has no leased event. */
  readonly isIdle: boolean;
  poll(): void;
}

/**
 * A lock for suspects (events that may have crashed a process). While one consumer has the lock and handles a
 * suspect, all other consumers of the process are idle. So a crash affects no other event.
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
   * Returns true if `participant` has the lock and all consumers are idle. If it returns false, `poll` of the
   * participant is called later, when a consumer becomes idle or the lock is released. `poll` should then
   * call `tryAcquire` again.
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

  /** Call it when a consumer has become idle, so that the owner of the lock tries again. */
  notifyOwner(): void {
    this.#owner?.poll();
  }
}

/** The default lock. All consumers of this process share it. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
