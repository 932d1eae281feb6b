import { Alarm, type Clock } from 'holdfast';

/** A body that is no longer is read to its end, so that its connection can be used again; of others the connection is closed. */
const drainedMax = 65_536;
/** How long that may take once nobody wants the response any more. */
export const drainMs = 1000;

/**
 * A response that is being repeated. Until the next attempt has begun it may still be what the caller gets (a breaker can
 * open meanwhile), so it is not thrown away before: what is short is read ahead, and stays readable.
 */
export class SpareResponse extends Alarm {
  readonly #response: Response;
  readonly #clock: Clock;
  #copy: ReadableStreamDefaultReader<Uint8Array> | undefined = undefined;
  #isReading = false;
  #isDrained = false;

  constructor(response: Response, clock: Clock) {
    super();
    this.#response = response;
    this.#clock = clock;
  }

  /** Frees the connection, where that takes little. */
  readAhead(): void {
    const { body, bodyUsed, headers } = this.#response;
    if (!body || bodyUsed || this.#copy || Number(headers.get('content-length')) > drainedMax) return;
    this.#copy = this.#response.clone().body?.getReader();
    this.#isReading = true;
    void this.#drain().finally(() => this.#clock.clear(this));
  }

  /** Nobody will read it any more. */
  discard(): void {
    this.readAhead();
    if (this.#isReading) this.#clock.set(this, this.#clock.now() + drainMs);
    else if (!this.#isDrained) this.#cancel();
  }

  ring(): void {
    this.#cancel();
  }

  async #drain(): Promise<void> {
    try {
      for (let length = 0; length <= drainedMax && !this.#isDrained; ) {
        const { done, value } = await this.#copy!.read();
        this.#isDrained = done;
        length += value?.byteLength ?? 0;
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
