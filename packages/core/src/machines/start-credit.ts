/**
 * The tokens of a new retry budget, so that even a single call can be retried. These tokens expire one window after the
 * first operation. With unlimited attempts, they expire one window after the first success, because such work may wait
 * for the end of an outage.
 */
export class StartCredit {
  /** The tokens that are left. */
  left: number;
  /** The most tokens that can be left after a refund. */
  max: number;
  /** When the tokens expire; Infinity until the window has started. */
  endsAt = Infinity;
  readonly #windowMs: number;
  readonly #waitsForSuccess: boolean;
  /** True: the window starts at the next call of a method with `now`. */
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

  /** Removes the tokens if they have expired. */
  pass(now: number): void {
    this.#start(now);
    if (now >= this.endsAt) this.left = this.max = 0;
  }

  #start(now: number): void {
    if (this.#starts && this.endsAt === Infinity) this.endsAt = now + this.#windowMs;
  }
}
