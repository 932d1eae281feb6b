import type { Random } from '../time/clock.ts';

/** A target that can be chosen: a host, an instance, a shard. */
export interface Candidate {
  readonly health: TargetHealth;
  readonly inFlight: number;
  /** Whether the breaker of this target would refuse a call now. */
  refuses(now: number): boolean;
}

/** When a target is ejected (not chosen for a while), and for how long. */
export interface ChoiceSettings {
  /**
   * After this many failures in a row a target is ejected, unless most of the other targets are failing too.
   */
  readonly consecutive: number;
  /**
   * The first ejection lasts `first` ms, the second twice as long, the third three times as long, up to
   * `most`. Random jitter shortens an ejection by at most half.
   */
  readonly ejectForMs: readonly [first: number, most: number];
}

interface Known<T> {
  has(candidate: T): boolean;
}

const SHARE_WEIGHT = 0.05;
const LATENCY_WEIGHT = 0.2;

/**
 * A target's `share` is the part of its calls that succeed. After an ejection (the target is not chosen for a
 * while), `share` is set to SHARE_ON_TRIAL. When `share` rises above SHARE_WELL, the target counts as
 * healthy, and its number of ejections is reset to 0.
 */
const SHARE_ON_TRIAL = 0.6;
const SHARE_WELL = 0.95;

/**
 * A target is ejected (not chosen for a while) if its share of successes is this much below the mean share of
 * the other targets.
 */
const GAP = 0.3;

/**
 * How much recent failures raise the cost of a target. The effect of a failure falls to 0 within FORGIVEN_MS.
 */
const PENALTY = 10;
const FORGIVEN_MS = 30_000;

const DRAWS = 3;

/** How well a target has answered lately. A refusal by the target counts as a failure, even if it is fast. */
export class TargetHealth {
  ejectedUntil = -Infinity;
  /** The number of ejections since the share of successes was last above SHARE_WELL. */
  ejections = 0;
  /** The share of calls that succeeded, from 0 to 1, as a moving average. */
  share = 1;
  inARow = 0;
  #latencyMs = 0;
  #settledAt = -Infinity;
  #failedAt = -Infinity;

  /**
   * Reports the result of a call. A fast failure does not lower the average latency. Results that arrive
   * while the target is ejected (not chosen) are ignored.
   */
  settle(now: number, durationMs: number, ok: boolean): void {
    if (now < this.ejectedUntil) return;
    if (this.#latencyMs === 0) this.#latencyMs = ok ? durationMs : 0;
    else if (ok || durationMs > this.#latencyMs)
      this.#latencyMs += (durationMs - this.#latencyMs) * LATENCY_WEIGHT;
    this.share += ((ok ? 1 : 0) - this.share) * SHARE_WEIGHT;
    this.inARow = ok ? 0 : this.inARow + 1;
    if (this.share > SHARE_WELL) this.ejections = 0;
    this.#settledAt = now;
    if (!ok) this.#failedAt = now;
  }

  /** Ejects the target: it is not chosen before `until`. Its latency is forgotten. */
  eject(until: number): void {
    this.ejectedUntil = until;
    this.ejections++;
    this.share = SHARE_ON_TRIAL;
    this.inARow = 0;
    this.#latencyMs = 0;
    this.#settledAt = this.#failedAt = -Infinity;
  }

  /**
   * Returns the moving average of the latency; 0 if it is unknown. The value falls while no call ends, so
   * that a slow target is tried again.
   */
  latencyMs(now: number): number {
    const idleSeconds = this.inARow > 0 ? 0 : Math.max(0, now - this.#settledAt) / 1000;
    return this.#latencyMs / (1 + idleSeconds * idleSeconds);
  }

  /** Returns a factor for the cost of this target. It is 1 if the target has not failed in the last FORGIVEN_MS. */
  penalty(now: number): number {
    // `fresh` falls from 1 to 0 in the FORGIVEN_MS after the last failure. Counting from the last call
    // instead would renew the penalty with every call.
    const fresh = Math.max(0, 1 - Math.max(0, now - this.#failedAt) / FORGIVEN_MS);
    return 1 + fresh * PENALTY * (this.inARow + 1 - this.share);
  }
}

/**
 * Chooses a target: draws two at random and takes the one with the lower cost. The cost is latency × calls in
 * flight × a penalty for recent failures. Because of the random draw, callers do not all choose the same
 * target.
 *
 * A target that fails much more than the others is ejected (not chosen) for a while. At most half of the
 * targets are ejected. None is ejected when all fail alike, because that is an outage. After an ejection, the
 * first failure ejects the target again, for longer.
 */
export class Choice<T extends Candidate> {
  readonly #settings: ChoiceSettings;
  readonly #random: Random;

  constructor(settings: ChoiceSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
  }

  /**
   * Chooses a target whose breaker does not refuse calls. It prefers targets that are not ejected and not in
   * `tried`, and never chooses one in `refused`. Returns undefined if no target is left.
   */
  choose(all: readonly T[], now: number, tried?: Known<T>, refused?: Known<T>): T | undefined {
    for (let leniency = tried ? 0 : 1; leniency <= 2; leniency++) {
      const one = this.#draw(all, now, leniency, tried, refused, undefined);
      if (!one) continue;
      const other = this.#draw(all, now, leniency, tried, refused, one);
      return other && isBetter(other, one, now) ? other : one;
    }
    return undefined;
  }

  /**
   * Draws a random target that is allowed. After DRAWS draws without success, takes the next allowed target
   * in the list. `leniency` 0 excludes ejected targets and those in `tried`, 1 excludes only ejected ones, 2
   * allows both.
   */
  #draw(
    all: readonly T[],
    now: number,
    leniency: number,
    tried: Known<T> | undefined,
    refused: Known<T> | undefined,
    except: T | undefined,
  ): T | undefined {
    let index = 0;
    for (let draws = 1; draws < DRAWS + all.length; draws++) {
      index = draws <= DRAWS ? Math.floor(this.#random() * all.length) : (index + 1) % all.length;
      const one = all[index] as T;
      if (one === except || refused?.has(one) || one.refuses(now)) continue;
      if (leniency < 1 && tried?.has(one)) continue;
      if (leniency < 2 && this.isEjected(one, all, now)) continue;
      return one;
    }
    return undefined;
  }

  /**
   * Whether a candidate is ejected (not chosen for a while). This call ejects a candidate that has failed
   * often enough since the last check.
   */
  isEjected({ health }: T, all: readonly T[], now: number): boolean {
    return now < health.ejectedUntil || (health.inARow > 0 && this.#tryEject(health, all, now));
  }

  #tryEject(health: TargetHealth, all: readonly T[], now: number): boolean {
    const { consecutive, ejectForMs } = this.#settings;
    let ejected = 1;
    let failing = 0;
    let share = 0;
    for (const { health: other } of all) {
      if (now < other.ejectedUntil) ejected++;
      else if (other !== health) {
        share += other.share;
        if (other.inARow > 0) failing++;
      }
    }
    const others = all.length - ejected;
    const fallen = health.inARow >= consecutive && failing <= others / 2;
    const outlier = share / others - health.share >= GAP;
    if (ejected > all.length / 2 || !(fallen || outlier)) return false;
    const forMs = Math.min(ejectForMs[1], ejectForMs[0] * (health.ejections + 1));
    health.eject(now + forMs * (0.5 + this.#random() / 2));
    return true;
  }
}

function isBetter(one: Candidate, other: Candidate, now: number): boolean {
  const ones = one.health.latencyMs(now);
  const others = other.health.latencyMs(now);
  // If the latency of one target is unknown, that of the other is used. So a new target gets a fair share of
  // the calls.
  return cost(one, ones || others || 1, now) < cost(other, others || ones || 1, now);
}

function cost({ health, inFlight }: Candidate, latencyMs: number, now: number): number {
  return latencyMs * (inFlight + 1) * health.penalty(now);
}
