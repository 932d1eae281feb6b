/** One who has events in hand, and may have to wait until the others have none. */
export interface Participant {
  readonly isIdle: boolean;
  /** Something has changed: look again. */
  goOn(): void;
}

/**
 * Lets one consumer of a process be alone in it. An event that was in hand when a process died may do it again: whatever
 * else the process had in hand would die with it.
 */
export class ExclusiveRun {
  readonly #inhabitants = new Set<Participant>();
  #owner: Participant | undefined;

  enter(inhabitant: Participant): void {
    this.#inhabitants.add(inhabitant);
  }

  leave(inhabitant: Participant): void {
    this.#inhabitants.delete(inhabitant);
    this.giveBack(inhabitant);
    this.release();
  }

  /** Whether another is alone, or waits to be: then nothing more may be taken in hand. */
  isWantedBeside(inhabitant: Participant): boolean {
    return this.#owner !== undefined && this.#owner !== inhabitant;
  }

  /** True once everybody's hands are empty. Until then the others take nothing more, and this is told to look again. */
  tryAcquire(inhabitant: Participant): boolean {
    this.#owner ??= inhabitant;
    if (this.#owner !== inhabitant) return false;
    for (const each of this.#inhabitants) if (!each.isIdle) return false;
    return true;
  }

  giveBack(inhabitant: Participant): void {
    if (this.#owner !== inhabitant) return;
    this.#owner = undefined;
    for (const each of this.#inhabitants) each.goOn();
  }

  /** Somebody's hands have become empty. */
  release(): void {
    this.#owner?.goOn();
  }
}

/** Of this process. */
export const processExclusiveRun: ExclusiveRun = new ExclusiveRun();
