import type { Clock, Priority, Random } from 'holdfast';

/** Tenants of one class fall into so many cohorts, which are shed one after the other. */
const cohortsInClass = 128;
const classes: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };
const levels = 3 * cohortsInClass;

/** The cohorts are dealt anew so often, so that it is not always the same tenants that suffer. */
const dealMs = 3_600_000;

const windowMs = 100;
const lowerBy = 0.05 * levels;
const raiseBy = 0.01 * levels;

/**
 * Who is still served when not all can be. A request has a level: its class, then the cohort of its tenant. Whole tenants
 * are shed rather than a part of everybody's requests, since a page that needs ten of them needs all ten. The threshold
 * goes down a twentieth in each window in which somebody had to be dropped, and up a hundredth in others. The
 * critical are never above it.
 */
export class TenantLevels {
  threshold: number = levels;
  readonly #random: Random;
  readonly #clock: Clock;
  #salt = 0;
  #dealtAt = -Infinity;
  #windowEndsAt = -Infinity;
  #dropped = false;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Somebody had to be dropped. */
  drop(): void {
    this.#dropped = true;
  }

  mayWait(priority: Priority, tenant: string, now: number): boolean {
    this.#move(now);
    if (this.threshold >= levels || priority === 'critical') return true;
    return classes[priority] * cohortsInClass + this.#cohortOf(tenant, now) < this.threshold;
  }

  #move(now: number): void {
    if (now < this.#windowEndsAt) return;
    const change = this.#dropped ? -lowerBy : raiseBy;
    this.threshold = Math.min(levels, Math.max(cohortsInClass, this.threshold + change));
    this.#dropped = false;
    this.#windowEndsAt = now + windowMs;
  }

  #cohortOf(tenant: string, now: number): number {
    if (now >= this.#dealtAt + dealMs) {
      this.#salt = Math.floor(this.#random() * 2 ** 32);
      this.#dealtAt = this.#clock.now();
    }
    // FNV-1a. Nobody can aim for a good cohort without knowing the salt.
    let mixed = 0x811c9dc5 ^ this.#salt;
    for (let index = 0; index < tenant.length; index++) {
      mixed = Math.imul(mixed ^ tenant.charCodeAt(index), 0x01000193);
    }
    mixed ^= mixed >>> 15;
    return (Math.imul(mixed, 0x2c1b3c6d) >>> 16) % cohortsInClass;
  }
}
