/**
 * The tokens that a new retry budget starts with. So even its first call can be retried. They expire one
 * window after the first operation. With unlimited attempts, they expire one window after the first success:
 * such operations may wait for the end of an outage.
 */
export class StartCredit {
  left: number;
  /** A refund cannot raise `left` above this. */
  max: number;
  /** When the tokens expire; Infinity before the window has started. */
  endsAt = Infinity;
  readonly #windowMs: number;
  readonly #waitsForSuccess: boolean;
  /** True: the window must start. It starts when the next method is called with the current time. */
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
