import { Alarm, type Clock } from 'holdfast';
import { ReadAhead, readAheadMax, readOverMax, readOverMs } from './read-ahead.ts';

/**
 * A response that is being repeated. Until the next attempt has begun it may still be what the caller gets (a breaker can
 * open meanwhile), so it is not thrown away before: up to 256 KiB are read ahead, and stay readable. What
 * has not ended when the next attempt begins is read on if it is short; of others the connection is closed.
 */
export class SpareResponse extends Alarm {
  readonly #response: Response;
  readonly #clock: Clock;
  #copy: ReadableStreamDefaultReader<Uint8Array> | undefined = undefined;
  readonly #ahead = new ReadAhead();
  #isReading = false;
  #isDrained = false;

  constructor(response: Response, clock: Clock) {
    super();
    this.#response = response;
    this.#clock = clock;
  }

  /** Frees the connection, where that takes little. */
  readAhead(bytesMax = readAheadMax): void {
    const { body, bodyUsed } = this.#response;
    if (!body || bodyUsed || this.#copy || this.#bytesSaid > bytesMax) return;
    this.#copy = this.#response.clone().body?.getReader();
    this.#isReading = true;
    void this.#drain().finally(() => this.#clock.clear(this));
  }

  /** It is the caller's. */
  release(): void {
    this.#ahead.release();
  }

  /** Nobody will read it any more: the next attempt has begun. */
  discard(): void {
    this.readAhead(readOverMax);
    this.#ahead.release();
    if (this.#isDrained) return;
    if (this.#isReading && this.#ahead.mayGoOn && this.#bytesSaid <= readOverMax)
      this.#clock.set(this, this.#clock.now() + readOverMs);
    else this.#cancel();
  }

  ring(): void {
    this.#cancel();
  }

  get #bytesSaid(): number {
    return Number(this.#response.headers.get('content-length'));
  }

  async #drain(): Promise<void> {
    try {
      while (this.#ahead.mayGoOn && !this.#isDrained) {
        const { done, value } = await this.#copy!.read();
        this.#isDrained = done;
        this.#ahead.add(value?.byteLength ?? 0);
      }
    } catch {
      // A connection that broke is free as well.
      this.#isDrained = true;
    }
    this.#isReading = false;
    if (this.#isDrained) return;
    // Longer than it looked. Whoever gets it can read on, and leave it; if nobody does, it is closed here.
    if (this.index >= 0) this.#cancel();
    else this.#copy?.cancel().catch(ignore);
  }

  /** Both halves: one alone would keep the connection open for the other. */
  #cancel(): void {
    this.#copy?.cancel().catch(ignore);
    this.#response.body?.cancel().catch(ignore);
  }
}

function ignore(): void {}
