export interface Participant {
  /** True: the consumer holds no leased event. */
  readonly isIdle: boolean;
  poll(): void;
}

/**
 * A lock for suspects (events that may have crashed a process). While its owner handles a suspect, all other consumers
 * of the process are idle. So a crash affects no other event.
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

  /** True: another consumer has or wants the lock, so `participant` must not lease events. */
  isHeldByOther(participant: Participant): boolean {
    return this.#owner !== undefined && this.#owner !== participant;
  }

  /**
   * Returns true if `participant` has the lock and all consumers are idle. Otherwise, `participant.poll` is called when
   * a consumer becomes idle.
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

/** The default lock of all consumers in this process. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
