export const ARRIVED = 1;
export const SENT = 2;
export const ANSWERED = 3;
export const FAILED = 4;
export const DONE_WELL = 5;
export const GAVE_UP = 6;

/**
 * A hash of all events of a run. The order of events with the same time does not change the hash, because
 * promises can change that order.
 */
export class Trace {
  count = 0;
  #low = 0;
  #high = 0;

  note(atUs: number, entity: number, kind: number): void {
    // Division is slow, so skip it for times below 2³¹ µs (36 minutes).
    const late = atUs < 0x80000000 ? 0 : (atUs / 0x100000000) | 0;
    let mixed = Math.imul((atUs | 0) ^ Math.imul(late, 0x85ebca6b), 0x9e3779b1);
    mixed = Math.imul((mixed ^ (mixed >>> 15)) + Math.imul(entity | 0, 0xc2b2ae35) + kind, 0x27d4eb2f);
    mixed ^= mixed >>> 13;
    this.#low = (this.#low + mixed) | 0;
    this.#high = (this.#high + Math.imul(mixed ^ (mixed >>> 16), 0x165667b1)) | 0;
    this.count++;
  }

  get hash(): string {
    return hex(this.#high) + hex(this.#low) + hex(this.count);
  }
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}
