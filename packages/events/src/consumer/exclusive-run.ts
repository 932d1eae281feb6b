/** A consumer that takes part in an exclusive run. */
export interface Participant {
  /** It holds no leased event. */
  readonly isIdle: boolean;
  /** Called when it may lease again. */
  poll(): void;
}

/**
 * Lets one consumer of a process handle an event while no other consumer of that process holds any. It is used for suspects:
 * events that were being handled when a process died. If one kills this process again, no other event is lost with it.
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

  /** True when another consumer has the exclusive run or waits for it. Then nothing may be leased. */
  isHeldByOther(participant: Participant): boolean {
    return this.#owner !== undefined && this.#owner !== participant;
  }

  /** True when all consumers are idle. Until then the others lease nothing, and `participant.poll` is called as they become idle. */
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

  /** To be called when a participant has become idle. */
  notifyOwner(): void {
    this.#owner?.poll();
  }
}

/** The default: shared by all consumers of this process. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
