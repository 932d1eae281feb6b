import { type Clock, fnv1a, type Priority, priorityRank, type Random } from 'holdfast';

/**
 * The tenants of one priority are distributed over this many levels. Under growing overload, one level after
 * the other is refused.
 */
const levelsPerPriority = 128;
const levels = 3 * levelsPerPriority;

/** After this time (ms), tenants get new random levels, so that not always the same tenants are refused. */
const reshuffleMs = 3_600_000;

const windowMs = 100;
const lowerBy = 0.05 * levels;
const raiseBy = 0.01 * levels;

/**
 * Decides which requests may wait when the server is full. It refuses all requests of some tenants instead of
 * some requests of every tenant, because a web page needs all its requests. The threshold is adjusted every
 * 100 ms.
 */
export class TenantLevels {
  threshold: number = levels;
  readonly #random: Random;
  readonly #clock: Clock;
  #salt = 0;
  #shuffledAt = -Infinity;
  #windowEndsAt = -Infinity;
  #hasDropped = false;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Call it when the process is overloaded, or when a request that was allowed to wait is refused. The
   * threshold is then lowered.
   */
  noteDrop(): void {
    this.#hasDropped = true;
  }

  mayWait(priority: Priority, tenant: string, now: number): boolean {
    this.#moveThreshold(now);
    if (this.threshold >= levels || priority === 'critical') return true;
    return priorityRank[priority] * levelsPerPriority + this.#levelOf(tenant, now) < this.threshold;
  }

  #moveThreshold(now: number): void {
    if (now < this.#windowEndsAt) return;
    const change = this.#hasDropped ? -lowerBy : raiseBy;
    this.threshold = Math.min(levels, Math.max(levelsPerPriority, this.threshold + change));
    this.#hasDropped = false;
    this.#windowEndsAt = now + windowMs;
  }

  #levelOf(tenant: string, now: number): number {
    if (now >= this.#shuffledAt + reshuffleMs) {
      this.#salt = Math.floor(this.#random() * 2 ** 32);
      this.#shuffledAt = this.#clock.now();
    }
    // The salt is random. Otherwise, a client could choose a tenant name that is rarely refused.
    let mixed = fnv1a(tenant, 0x811c9dc5 ^ this.#salt);
    mixed ^= mixed >>> 15;
    return (Math.imul(mixed, 0x2c1b3c6d) >>> 16) % levelsPerPriority;
  }
}
