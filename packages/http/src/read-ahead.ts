/**
 * The most bytes of a failed response that are read during the wait for the retry. A response that is read to
 * its end frees its connection for reuse. But reading more bytes than this costs more than a new connection.
 */
export const readAheadMax = 262_144;
/**
 * The most bytes of failed responses that the whole process keeps in memory. When this limit is reached, each
 * response may keep only `drainMax` bytes.
 */
const keptMax = 16 * 1_048_576;

/**
 * A discarded response of at most this many bytes is read to its end within `drainMs`, so that its connection
 * can be reused. A longer response is aborted.
 */
export const drainMax = 65_536;
export const drainMs = 1000;

let keptBytes = 0;

/**
 * Counts the bytes of one failed response that are read during the wait for the retry. The bytes are kept in
 * memory, because the caller gets this response if there is no retry after all.
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

  /**
   * Call this method when the bytes were passed to the caller or discarded. From then on, these bytes are not
   * counted.
   */
  release(): void {
    if (this.#isKept) keptBytes -= this.#length;
    this.#isKept = false;
  }
}
