import type { Random } from '../time/clock.ts';

/** What can be chosen: a host, an instance, a shard. */
export interface Candidate {
  readonly health: TargetHealth;
  readonly inFlight: number;
  /** Whether its breaker would refuse a call now. */
  refuses(now: number): boolean;
}

export interface ChoiceSettings {
  /** Failures in a row after which a candidate is sent away, unless most of the others are failing too. */
  readonly consecutive: number;
  /** How long at first; the second time twice as long, then three times, up to the most. Chance takes up to half. */
  readonly ejectForMs: readonly [first: number, most: number];
}

/** A set to look things up in; a Set will do. */
interface Known<T> {
  has(candidate: T): boolean;
}

/** What one outcome weighs in the share of successes, and what one sample weighs in the latency. */
const SHARE_WEIGHT = 0.05;
const LATENCY_WEIGHT = 0.2;

/** The share of one that comes back on trial, and the one at which all is forgiven. */
const SHARE_ON_TRIAL = 0.6;
const SHARE_WELL = 0.95;

/** How far below the others' share of successes one is sent away. */
const GAP = 0.3;

/** A failure makes a candidate look this much worse; it is forgotten in so many ms. */
const PENALTY = 10;
const FORGIVEN_MS = 30_000;

const DRAWS = 3;

/** How a candidate has done lately. Only what it answered well can make it look better: a quick refusal is a failure. */
export class TargetHealth {
  ejectedUntil = -Infinity;
  /** How often it was sent away since it last did well. */
  ejections = 0;
  /** A moving share of successes. */
  share = 1;
  inARow = 0;
  #latencyMs = 0;
  #settledAt = -Infinity;
  #failedAt = -Infinity;

  /** A call has ended. A failure can only make it look slower; and while it is away, what was sent before says nothing new. */
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

  /** Sends it away. It comes back like a newcomer, but on trial. */
  eject(until: number): void {
    this.ejectedUntil = until;
    this.ejections++;
    this.share = SHARE_ON_TRIAL;
    this.inARow = 0;
    this.#latencyMs = 0;
    this.#settledAt = this.#failedAt = -Infinity;
  }

  /** A moving average, 0 while unknown. It fades while nobody calls, so that what was slow once is tried again. */
  latencyMs(now: number): number {
    const idleSeconds = this.inARow > 0 ? 0 : Math.max(0, now - this.#settledAt) / 1000;
    return this.#latencyMs / (1 + idleSeconds * idleSeconds);
  }

  /** How much worse it is than it looks: 1 when it has not failed lately. */
  penalty(now: number): number {
    // From the last failure: were it from the last call, the few that a recovered one gets would each renew it.
    const fresh = Math.max(0, 1 - Math.max(0, now - this.#failedAt) / FORGIVEN_MS);
    return 1 + fresh * PENALTY * (this.inARow + 1 - this.share);
  }
}

/**
 * Chooses among several targets: of two at random the one with less latency × calls in flight, so that nobody has to
 * know the whole, and everybody does not run to the same one.
 *
 * One that fails much more than the others is sent away for a while, but never more than half of them, and none when all
 * fail alike: that is an outage, not an outlier. It comes back on trial: its first failure sends it away for longer.
 */
export class Choice<T extends Candidate> {
  readonly #settings: ChoiceSettings;
  readonly #random: Random;

  constructor(settings: ChoiceSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
  }

  /**
   * One that does not refuse and was not sent away, and if possible was not `tried`; when all others refuse, one that was
   * sent away; undefined when all refuse. Never one of `refused`.
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

  /** A random one that fits; when a few draws find none, the next that does. */
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
      if (leniency < 2 && this.#isAway(one, all, now)) continue;
      return one;
    }
    return undefined;
  }

  #isAway({ health }: T, all: readonly T[], now: number): boolean {
    return now < health.ejectedUntil || (health.inARow > 0 && this.#sendsAway(health, all, now));
  }

  #sendsAway(health: TargetHealth, all: readonly T[], now: number): boolean {
    const { consecutive, ejectForMs } = this.#settings;
    let away = 1;
    let failing = 0;
    let share = 0;
    for (const { health: other } of all) {
      if (now < other.ejectedUntil) away++;
      else if (other !== health) {
        share += other.share;
        if (other.inARow > 0) failing++;
      }
    }
    const others = all.length - away;
    const fallen = health.inARow >= consecutive && failing <= others / 2;
    const outlier = share / others - health.share >= GAP;
    if (away > all.length / 2 || !(fallen || outlier)) return false;
    const forMs = Math.min(ejectForMs[1], ejectForMs[0] * (health.ejections + 1));
    health.eject(now + forMs * (0.5 + this.#random() / 2));
    return true;
  }
}

function isBetter(one: Candidate, other: Candidate, now: number): boolean {
  const ones = one.health.latencyMs(now);
  const others = other.health.latencyMs(now);
  // What is not known yet is taken to be like the other, so that a newcomer is neither flooded nor shunned.
  return cost(one, ones || others || 1, now) < cost(other, others || ones || 1, now);
}

function cost({ health, inFlight }: Candidate, latencyMs: number, now: number): number {
  return latencyMs * (inFlight + 1) * health.penalty(now);
}
