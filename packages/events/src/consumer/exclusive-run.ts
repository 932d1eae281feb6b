/** One who has events in hand, and may have to wait until the others have none. */
export interface Inhabitant {
  readonly isEmptyHanded: boolean;
  /** Something has changed: look again. */
  goOn(): void;
}

/**
 * Lets one consumer of a process be alone in it. An event that was in hand when a process died may do it again: whatever
 * else the process had in hand would die with it.
 */
export class Solitude {
  readonly #inhabitants = new Set<Inhabitant>();
  #hermit: Inhabitant | undefined;

  enter(inhabitant: Inhabitant): void {
    this.#inhabitants.add(inhabitant);
  }

  leave(inhabitant: Inhabitant): void {
    this.#inhabitants.delete(inhabitant);
    this.giveBack(inhabitant);
    this.emptied();
  }

  /** Whether another is alone, or waits to be: then nothing more may be taken in hand. */
  isWantedBeside(inhabitant: Inhabitant): boolean {
    return this.#hermit !== undefined && this.#hermit !== inhabitant;
  }

  /** True once everybody's hands are empty. Until then the others take nothing more, and this is told to look again. */
  tryBeAlone(inhabitant: Inhabitant): boolean {
    this.#hermit ??= inhabitant;
    if (this.#hermit !== inhabitant) return false;
    for (const each of this.#inhabitants) if (!each.isEmptyHanded) return false;
    return true;
  }

  giveBack(inhabitant: Inhabitant): void {
    if (this.#hermit !== inhabitant) return;
    this.#hermit = undefined;
    for (const each of this.#inhabitants) each.goOn();
  }

  /** Somebody's hands have become empty. */
  emptied(): void {
    this.#hermit?.goOn();
  }
}

/** Of this process. */
export const processSolitude: Solitude = new Solitude();
