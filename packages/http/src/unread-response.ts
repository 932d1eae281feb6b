import { type Clock, Timer } from 'holdfast';
import { drainMax, drainMs, ReadAhead, readAheadMax } from './read-ahead.ts';

/**
 * A response that will be retried. Until the next attempt begins the caller may still get it (a breaker can open meanwhile),
 * so up to 256 KiB are read ahead, and stay readable. When the next attempt begins, the rest of a response of at most 64 KiB
 * is drained; the connection of a longer one is closed.
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

  /** Reads a response of at most `bytesMax`, which frees its connection. */
  readAhead(bytesMax = readAheadMax): void {
    const { body, bodyUsed } = this.#response;
    if (!body || bodyUsed || this.#copy || this.#contentLength > bytesMax) return;
    this.#copy = this.#response.clone().body?.getReader();
    this.#isReading = true;
    void this.#drain().finally(() => this.#drainTimer.clear());
  }

  /** The caller gets this response. */
  release(): void {
    this.#ahead.release();
  }

  /** The next attempt has begun: the caller will not get this response. */
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
      // A broken connection does not have to be freed.
      this.#isDrained = true;
    }
    this.#isReading = false;
    if (this.#isDrained) return;
    // The response is too long. If it was discarded, it is cancelled; otherwise only the copy is, and the caller can read on.
    if (this.#drainTimer.isSet) this.#cancel();
    else this.#copy?.cancel().catch(ignore);
  }

  /** Cancels response and copy: one alone would keep the connection open for the other. */
  #cancel(): void {
    this.#copy?.cancel().catch(ignore);
    this.#response.body?.cancel().catch(ignore);
  }
}

function ignore(): void {}
