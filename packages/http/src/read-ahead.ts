/**
 * At most this many bytes of a response that will be retried are read during the backoff. Reading 1 MiB takes `fetch` up to twice
 * the processor time of a new connection.
 */
export const readAheadMax = 262_144;
/** When the process keeps more than this, each response keeps no more than `drainMax`. */
const keptMax = 16 * 1_048_576;

/** A response of at most this size is drained while the next attempt runs, for at most `drainMs`; a longer one is aborted. */
export const drainMax = 65_536;
export const drainMs = 1000;

/** Bytes of all responses that are kept now. */
let keptBytes = 0;

/**
 * Counts the bytes that were read of a response that will be retried. A response that is read to its end frees its connection
 * for the next attempt. The bytes are kept until that attempt begins, because the caller may still get this response.
 */
export class ReadAhead {
  #length = 0;
  #isKept = true;

  add(bytes: number): void {
    this.#length += bytes;
    if (this.#isKept) keptBytes += bytes;
  }

  get mayContinue(): boolean {
    if (this.#length <= drainMax) return true;
    return this.#isKept && this.#length <= readAheadMax && keptBytes <= keptMax;
  }

  /** The bytes are given to the caller or thrown away: they no longer count as kept. */
  release(): void {
    if (this.#isKept) keptBytes -= this.#length;
    this.#isKept = false;
  }
}
