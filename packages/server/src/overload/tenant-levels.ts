import { type Clock, fnv1a, type Priority, priorityRank, type Random } from 'holdfast';

/**
 * The tenants of one priority are spread over this many levels. With growing overload, one level after another
 * is refused.
 */
const levelsPerPriority = 128;
const levels = 3 * levelsPerPriority;

/**
 * After this time (ms), tenants get new random levels. Otherwise, the same tenants would always be refused.
 */
const reshuffleMs = 3_600_000;

const windowMs = 100;
const lowerBy = 0.05 * levels;
const raiseBy = 0.01 * levels;

/**
 * Decides which requests may wait when the server is full. It refuses all requests of some tenants instead of
 * some requests of all tenants, because a web page works only if all its requests succeed.
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

  /** Lowers the threshold. Call it when the process is overloaded, or a waiting request is refused. */
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
    // Without a random salt, a client could choose a tenant name that is rarely refused.
    let mixed = fnv1a(tenant, 0x811c9dc5 ^ this.#salt);
    mixed ^= mixed >>> 15;
    return (Math.imul(mixed, 0x2c1b3c6d) >>> 16) % levelsPerPriority;
  }
}
