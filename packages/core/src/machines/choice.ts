import type { Random } from '../time/clock.ts';

/** A target that can be chosen: a host, an instance, a shard. */
export interface Candidate {
  readonly health: TargetHealth;
  readonly inFlight: number;
  /** Whether its breaker would refuse a call now. */
  refuses(now: number): boolean;
}

export interface ChoiceSettings {
  /**
   * After this many failures in a row a candidate is ejected (not chosen for a while), unless most others are failing
   * too.
   */
  readonly consecutive: number;
  /**
   * The first ejection lasts `first` ms, the second twice that, and so on up to `most`. A random part of it, up to
   * half, is subtracted.
   */
  readonly ejectForMs: readonly [first: number, most: number];
}

/** The only method of a Set that `Choice` needs. */
interface Known<T> {
  has(candidate: T): boolean;
}

/** The weight of one outcome in the moving share of successes, and of one sample in the moving latency. */
const SHARE_WEIGHT = 0.05;
const LATENCY_WEIGHT = 0.2;

/**
 * The share of successes that a candidate has after an ejection, and the share above which its ejections count from 0
 * again.
 */
const SHARE_ON_TRIAL = 0.6;
const SHARE_WELL = 0.95;

/** A candidate is ejected when its share of successes is this far below the mean share of the others. */
const GAP = 0.3;

/**
 * The weight of failures in the cost of a candidate; the lower cost is chosen. It falls to 0 within FORGIVEN_MS of the
 * last failure.
 */
const PENALTY = 10;
const FORGIVEN_MS = 30_000;

const DRAWS = 3;

/** How well a target has answered lately. Only successes improve it: a refusal is a failure, however quick it is. */
export class TargetHealth {
  ejectedUntil = -Infinity;
  /** Ejections since the share of successes was last above SHARE_WELL. */
  ejections = 0;
  /** A moving average of successes, from 0 to 1. */
  share = 1;
  inARow = 0;
  #latencyMs = 0;
  #settledAt = -Infinity;
  #failedAt = -Infinity;

  /**
   * Reports the result of a call. A failure can raise the latency but never lower it. While the target is ejected, the
   * results of calls that were sent before the ejection are ignored.
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

  /** Ejects the target. Afterwards its latency is unknown, and its share of successes is SHARE_ON_TRIAL. */
  eject(until: number): void {
    this.ejectedUntil = until;
    this.ejections++;
    this.share = SHARE_ON_TRIAL;
    this.inARow = 0;
    this.#latencyMs = 0;
    this.#settledAt = this.#failedAt = -Infinity;
  }

  /**
   * A moving average of the latency; 0 while unknown. It falls while no call ends, so that a target that was slow is
   * tried again.
   */
  latencyMs(now: number): number {
    const idleSeconds = this.inARow > 0 ? 0 : Math.max(0, now - this.#settledAt) / 1000;
    return this.#latencyMs / (1 + idleSeconds * idleSeconds);
  }

  /** A factor of the cost of this target: 1 if it has not failed in the last FORGIVEN_MS. */
  penalty(now: number): number {
    // The time is measured from the last failure. If it were measured from the last call, the few calls to a recovered
    // target would renew the penalty.
    const fresh = Math.max(0, 1 - Math.max(0, now - this.#failedAt) / FORGIVEN_MS);
    return 1 + fresh * PENALTY * (this.inARow + 1 - this.share);
  }
}

/**
 * Chooses among several targets: draws two at random and takes the one with the lower cost, which is latency × calls in
 * flight, times a penalty for recent failures. So no caller has to compare all targets, and callers do not all choose
 * the same one.
 *
 * A target that fails much more than the others is ejected (not chosen) for a while. At most half of the targets are
 * ejected, and none when all fail alike: that is an outage, not an outlier. After an ejection, the first failure of the
 * target ejects it again, for longer.
 */
export class Choice<T extends Candidate> {
  readonly #settings: ChoiceSettings;
  readonly #random: Random;

  constructor(settings: ChoiceSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
  }

  /**
   * Chooses a candidate that does not refuse and is not ejected, if possible one that is not in `tried`. If there is
   * none, it chooses an ejected candidate that does not refuse. If that does not exist either, it returns undefined. It
   * never chooses a candidate in `refused`.
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
   * Draws a random candidate that fits; after DRAWS misses, takes the next in the list that fits. `leniency` 1 also
   * allows candidates in `tried`, and 2 also ejected ones.
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
      if (leniency < 2 && this.#isEjected(one, all, now)) continue;
      return one;
    }
    return undefined;
  }

  #isEjected({ health }: T, all: readonly T[], now: number): boolean {
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
  // An unknown latency is assumed to equal the other one, so that a new target gets neither all calls nor none.
  return cost(one, ones || others || 1, now) < cost(other, others || ones || 1, now);
}

function cost({ health, inFlight }: Candidate, latencyMs: number, now: number): number {
  return latencyMs * (inFlight + 1) * health.penalty(now);
}
