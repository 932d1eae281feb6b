/**
 * The tokens that a fresh budget starts with, so that a script with a single call can retry it. They are gone one window
 * after the first operation began. Work with unlimited attempts may begin inside an outage, and needs them for as long
 * as that lasts: there the window starts with the first success.
 */
export class StartCredit {
  /** Tokens left, and how many a refund may fill it up to. */
  left: number;
  max: number;
  /** Infinity until the window has started. */
  endsAt = Infinity;
  readonly #windowMs: number;
  readonly #waitsForSuccess: boolean;
  /** The window starts with the next call that knows the time. */
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

  /** Brings `left` up to date. */
  pass(now: number): void {
    this.#start(now);
    if (now >= this.endsAt) this.left = this.max = 0;
  }

  #start(now: number): void {
    if (this.#starts && this.endsAt === Infinity) this.endsAt = now + this.#windowMs;
  }
}
