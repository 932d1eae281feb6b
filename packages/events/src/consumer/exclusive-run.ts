/** One who has events in hand, and may have to wait until the others have none. */
export interface Participant {
  readonly isIdle: boolean;
  /** Something has changed: look again. */
  poll(): void;
}

/**
 * Lets one consumer of a process be alone in it. An event that was in hand when a process died may do it again: whatever
 * else the process had in hand would die with it.
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

  /** Whether another is alone, or waits to be: then nothing more may be taken in hand. */
  isHeldByOther(participant: Participant): boolean {
    return this.#owner !== undefined && this.#owner !== participant;
  }

  /** True once everybody's hands are empty. Until then the others take nothing more, and this is told to look again. */
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

  /** Somebody's hands have become empty. */
  notifyOwner(): void {
    this.#owner?.poll();
  }
}

/** Of this process. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
