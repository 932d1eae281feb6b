import { type Clock, fnv1a, type Priority, priorityRank, type Random } from 'holdfast';

/**
 * The tenants of one priority are distributed over this many levels. Under overload whole levels are refused, one after
 * the other.
 */
const levelsPerPriority = 128;
const levels = 3 * levelsPerPriority;

/** After this time tenants get new random levels, so that not always the same tenants are refused. */
const reshuffleMs = 3_600_000;

const windowMs = 100;
const lowerBy = 0.05 * levels;
const raiseBy = 0.01 * levels;

/**
 * Decides which requests may wait when the server is full. The level of a request is given by its priority first, and
 * then by its tenant; requests with a level below the threshold may wait. So some tenants are refused completely,
 * instead of a part of every tenant's requests, because a page that needs ten requests needs all ten.
 *
 * The threshold moves every 100 ms: it falls by 5 % of all levels if a request was dropped in that time, and otherwise
 * rises by 1 %. It never falls into the levels of critical requests.
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

  /** Call it when a request that was allowed to wait was refused after all. */
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
    // Without the random salt, a caller could choose a tenant name that has a low level.
    let mixed = fnv1a(tenant, 0x811c9dc5 ^ this.#salt);
    mixed ^= mixed >>> 15;
    return (Math.imul(mixed, 0x2c1b3c6d) >>> 16) % levelsPerPriority;
  }
}
