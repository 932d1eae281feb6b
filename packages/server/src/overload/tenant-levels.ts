import { type Clock, fnv1a, type Priority, priorityRank, type Random } from 'holdfast';

/** The tenants of one priority are spread over this many levels, which are shed one after the other. */
const levelsPerPriority = 128;
const levels = 3 * levelsPerPriority;

/** Tenants get new levels this often, so that it is not always the same tenants that are shed. */
const reshuffleMs = 3_600_000;

const windowMs = 100;
const lowerBy = 0.05 * levels;
const raiseBy = 0.01 * levels;

/**
 * Decides who is served when not all can be. A request has a level: its priority, then the level of its tenant. Whole tenants
 * are shed instead of a part of every tenant's requests, because a page that needs ten requests needs all ten. In a window
 * of 100 ms in which a request was dropped the threshold falls by a twentieth of all levels, in others it rises by a
 * hundredth. It never falls below the levels of critical requests.
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

  /** Call it when a request that was allowed to wait was dropped. */
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
    // Without the salt, a caller could choose a tenant name with a low level.
    let mixed = fnv1a(tenant, 0x811c9dc5 ^ this.#salt);
    mixed ^= mixed >>> 15;
    return (Math.imul(mixed, 0x2c1b3c6d) >>> 16) % levelsPerPriority;
  }
}
