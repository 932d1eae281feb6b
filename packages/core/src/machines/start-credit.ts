/**
 * The tokens that a fresh budget starts with, so that a script with a single call can retry it. They expire one window
 * after the first operation began. Work with unlimited attempts may begin during an outage and needs them until it ends:
 * there the window starts with the first success.
 */
export class StartCredit {
  /** Tokens left, and the maximum that a refund can restore. */
  left: number;
  max: number;
  /** Infinity until the window has started. */
  endsAt = Infinity;
  readonly #windowMs: number;
  readonly #waitsForSuccess: boolean;
  /** The window starts with the next call of a method that has a `now`. */
  #starts = false;

  constructor(tokens: number, windowMs: number, waitsForSuccess: boolean) {
    this.left = this.max = tokens;
    this.#windowMs = windowMs;
    this.#waitsForSuccess = waitsForSuccess;
  }

  onFirstTry(now: number): void {
    this.#starts ||= !this.#waitsForSuccess;
    this.#start(now);
  }

  onSuccess(): void {
    this.#starts = true;
  }

  /** Expires the credit if its window has ended. */
  pass(now: number): void {
    this.#start(now);
    if (now >= this.endsAt) this.left = this.max = 0;
  }

  #start(now: number): void {
    if (this.#starts && this.endsAt === Infinity) this.endsAt = now + this.#windowMs;
  }
}
