/**
 * The most bytes of a failed response that are read during the wait for the retry. Reading to the end frees the
 * connection, but reading much more costs more than a new connection.
 */
export const readAheadMax = 262_144;
/** If all failed responses together keep more bytes than this, each may keep only `drainMax` bytes. */
const keptMax = 16 * 1_048_576;

/** A discarded response of at most this size is read to its end, within `drainMs`. A longer response is aborted. */
export const drainMax = 65_536;
export const drainMs = 1000;

let keptBytes = 0;

/**
 * Counts the bytes of one failed response that are read during the wait for the retry. Reading the response to its end
 * frees its connection. The bytes are kept, because the caller may still get this response.
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

  /** Call it when the bytes were passed to the caller or discarded. */
  release(): void {
    if (this.#isKept) keptBytes -= this.#length;
    this.#isKept = false;
  }
}
