/**
 * The tokens that a new retry budget starts with, so that a script with a single call can retry it. They expire one
 * window after the first operation began. With unlimited attempts the window starts with the first success instead,
 * because such work may begin during an outage and needs the tokens until the outage ends.
 */
export class StartCredit {
  /** Tokens left, and the maximum that a refund can restore. */
  left: number;
  max: number;
  /** When the tokens expire; Infinity until the window has started. */
  endsAt = Infinity;
  readonly #windowMs: number;
  readonly #waitsForSuccess: boolean;
  /** True: the window starts with the next call that passes `now`. */
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

  /** Removes the tokens if their window has ended. */
  pass(now: number): void {
    this.#start(now);
    if (now >= this.endsAt) this.left = this.max = 0;
  }

  #start(now: number): void {
    if (this.#starts && this.endsAt === Infinity) this.endsAt = now + this.#windowMs;
  }
}
