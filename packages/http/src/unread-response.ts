import { type Clock, Timer } from 'holdfast';
import { drainMax, drainMs, ReadAhead, readAheadMax } from './read-ahead.ts';

/**
 * A failed response whose request will probably be retried. During the wait, up to 256 KiB of it are read and
 * kept. The caller may still get this response, for example if a circuit breaker opens during the wait.
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
   * Reads a copy of the response, unless its content-length is above `bytesMax`. When the copy is read to the
   * end, the connection can be reused.
   */
  readAhead(bytesMax = readAheadMax): void {
    const { body, bodyUsed } = this.#response;
    if (!body || bodyUsed || this.#copy || this.#contentLength > bytesMax) return;
    this.#copy = this.#response.clone().body?.getReader();
    this.#isReading = true;
    void this.#drain().finally(() => this.#drainTimer.clear());
  }

  release(): void {
    this.#ahead.release();
  }

  /**
   * Call this method when the next attempt has begun. From then on, the caller cannot get this response any
   * more.
   */
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
      // Reading failed, so the connection is closed.
      this.#isDrained = true;
    }
    this.#isReading = false;
    if (this.#isDrained) return;
    // The response is too long to read. A discarded response is cancelled; otherwise only the copy is cancelled.
    if (this.#drainTimer.isSet) this.#cancel();
    else this.#copy?.cancel().catch(ignore);
  }

  /** Cancels the response and its copy. If one of them stayed open, the connection would stay open. */
  #cancel(): void {
    this.#copy?.cancel().catch(ignore);
    this.#response.body?.cancel().catch(ignore);
  }
}

function ignore(): void {}
