import { type Clock, Timer } from 'holdfast';
import { drainMax, drainMs, ReadAhead, readAheadMax } from './read-ahead.ts';

/**
 * The failed response of an attempt that will be retried. Until the next attempt begins, the caller may still get this
 * response (a breaker may open during the wait), so up to 256 KiB of it are read and kept. When the next attempt
 * begins, the rest of a response of at most 64 KiB is read and discarded; the connection of a longer response is
 * closed.
 */
export class UnreadResponse {
  readonly #response: Response;
  readonly #drainTimer: Timer;
  #copy: ReadableStreamDefaultReader<Uint8Array> | undefined = undefined;
  readonly #ahead = new ReadAhead();
  #isReading = false;
  #isDrained = false;

  constructor(response: Response, clock: Clock) {
    this.#response = response;
    this.#drainTimer = new Timer(clock, () => this.#cancel());
  }

  /**
   * Reads a copy of the response, unless its content-length is above `bytesMax`. Reading it to its end frees its
   * connection.
   */
  readAhead(bytesMax = readAheadMax): void {
    const { body, bodyUsed } = this.#response;
    if (!body || bodyUsed || this.#copy || this.#contentLength > bytesMax) return;
    this.#copy = this.#response.clone().body?.getReader();
    this.#isReading = true;
    void this.#drain().finally(() => this.#drainTimer.clear());
  }

  /** Call it when the caller gets this response. */
  release(): void {
    this.#ahead.release();
  }

  /** Call it when the next attempt has begun, so that the caller will not get this response. */
  discard(): void {
    this.readAhead(drainMax);
    this.#ahead.release();
    if (this.#isDrained) return;
    if (this.#isReading && this.#ahead.mayContinue && this.#contentLength <= drainMax)
      this.#drainTimer.setIn(drainMs);
    else this.#cancel();
  }

  get #contentLength(): number {
    return Number(this.#response.headers.get('content-length'));
  }

  async #drain(): Promise<void> {
    try {
      while (this.#ahead.mayContinue && !this.#isDrained) {
        const { done, value } = await this.#copy!.read();
        this.#isDrained = done;
        this.#ahead.add(value?.byteLength ?? 0);
      }
    } catch {
      // Reading failed, so the connection is closed and does not have to be freed.
      this.#isDrained = true;
    }
    this.#isReading = false;
    if (this.#isDrained) return;
    // The response is too long to read. A discarded response is cancelled. Otherwise only the copy is cancelled, and
    // the caller can still read the response.
    if (this.#drainTimer.isSet) this.#cancel();
    else this.#copy?.cancel().catch(ignore);
  }

  /** Cancels both the response and its copy. If only one were cancelled, the other would keep the connection open. */
  #cancel(): void {
    this.#copy?.cancel().catch(ignore);
    this.#response.body?.cancel().catch(ignore);
  }
}

function ignore(): void {}
