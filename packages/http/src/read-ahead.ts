/**
 * So many bytes of a response that is being repeated are read while the next attempt waits. At 1 MiB, reading takes `fetch` up to
 * twice the processor time of a new connection.
 */
export const readAheadMax = 262_144;
/** Beyond so many in this process, each response keeps no more than `readOverMax`. */
const keptMax = 16 * 1_048_576;

/** Of a response that is no longer, what has not come by then is read beside the next attempt, for so many ms at most. */
export const readOverMax = 65_536;
export const readOverMs = 1000;

/** Bytes that are kept now, of all responses that are being repeated. */
let keptBytes = 0;

/**
 * How much was read of a response that is being repeated. A response that is read to its end frees its connection for the
 * next attempt. What was read is kept until that attempt begins, because it may still be what the caller gets.
 */
export class ReadAhead {
  #length = 0;
  #isKept = true;

  add(bytes: number): void {
    this.#length += bytes;
    if (this.#isKept) keptBytes += bytes;
  }

  get mayGoOn(): boolean {
    if (this.#length <= readOverMax) return true;
    return this.#isKept && this.#length <= readAheadMax && keptBytes <= keptMax;
  }

  /** The caller gets what was read, or nobody does: it is not kept here any more. */
  release(): void {
    if (this.#isKept) keptBytes -= this.#length;
    this.#isKept = false;
  }
}
