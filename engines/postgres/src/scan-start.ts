import type { Clock } from 'holdfast';

/** For so long a claim may begin where the one before it did: what came to the front meanwhile waits no longer than this. */
const trustMs = 50;

/** Where the front of each line is, while claims come one after the other and are full. */
export class LineFront {
  readonly #clock: Clock;
  readonly #fronts = new Map<string, { readonly dueAt: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0: nobody knows. */
  since(topic: string): number {
    const front = this.#fronts.get(topic);
    return front !== undefined && this.#clock.now() < front.until ? front.dueAt : 0;
  }

  /** A claim that began at `since` found `dueAt` first; `null`: it did not fill its hands. */
  note(topic: string, since: number, dueAt: number | null): void {
    if (dueAt === null) this.#fronts.delete(topic);
    // Only who has looked at the very front knows that nothing was before it.
    else if (since === 0) this.#fronts.set(topic, { dueAt, until: this.#clock.now() + trustMs });
    else this.#moved(topic, dueAt);
  }

  #moved(topic: string, dueAt: number): void {
    const front = this.#fronts.get(topic);
    if (front !== undefined)
      this.#fronts.set(topic, { dueAt: Math.max(front.dueAt, dueAt), until: front.until });
  }
}
