/**
 * How many bytes of a failed response are read during the wait for its retry, so that its connection becomes free.
 * Reading 1 MiB would cost `fetch` up to twice the processor time of a new connection.
 */
export const readAheadMax = 262_144;
/** If all failed responses together keep more bytes than this, each of them may keep no more than `drainMax`. */
const keptMax = 16 * 1_048_576;

/**
 * A discarded response of at most this size is read to its end while the next attempt runs, for at most `drainMs`. A
 * longer response is aborted.
 */
export const drainMax = 65_536;
export const drainMs = 1000;

/** The bytes that all failed responses of this process keep now. */
let keptBytes = 0;

/**
 * Counts the bytes of one failed response that are read during the wait for its retry. Reading a response to its end
 * frees its connection for the next attempt. The reader keeps the bytes in memory until the next attempt begins,
 * because the caller may still get this response.
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

  /** Call it when the bytes were passed on to the caller or discarded. The bytes then no longer count as kept. */
  release(): void {
    if (this.#isKept) keptBytes -= this.#length;
    this.#isKept = false;
  }
}
