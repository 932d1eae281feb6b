import { type Clock, type Random, systemClock } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { type ChaosPlan, type ChaosSpec, type FaultKind, type Place, readChaos } from './spec.ts';
import { type Fault, type Subject, strike } from './strike.ts';

/** The clock and the random numbers for faults. Tests can replace them. */
export interface ChaosOptions {
  /** The clock for faults and delays. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: made from the seed of the `ChaosSpec`. */
  readonly random?: Random | undefined;
}

export const chaosOptions: Readonly<Record<keyof ChaosOptions, true>> = { clock: true, random: true };

/**
 * How many calls, events or exchanges (a request and its answer) there were, and how many of them were hit by
 * a fault.
 */
export interface ChaosCounts {
  /**
   * The number of subjects so far. A subject is a call, an event, or an exchange on a connection (a request
   * and its answer).
   */
  readonly subjects: number;
  /** The number of subjects (calls, events or exchanges) that were hit by a fault. */
  readonly struck: number;
  readonly byKind: Readonly<Partial<Record<FaultKind, number>>>;
}

/** The faults that are injected into one `fetch`, handler or proxy. */
export interface Chaos {
  readonly spec: ChaosSpec;
  readonly counts: ChaosCounts;
  /**
   * Replaces the faults. Times, random numbers and the numbers of calls, events or exchanges start again, but
   * `counts` continues. If `spec` is invalid, throws an `OptionsError` and changes nothing.
   */
  set(spec: ChaosSpec): void;
  /** Removes all faults. */
  heal(): void;
}

export class RunningChaos implements Chaos {
  readonly #place: Place;
  readonly #clock: Clock;
  readonly #given: Random | undefined;
  #random!: Random;
  #startedAt!: number;
  #arrived!: number;
  #counts!: { subjects: number; struck: number; byKind: Partial<Record<FaultKind, number>> };
  spec!: ChaosSpec;
  plan!: ChaosPlan;

  constructor(place: Place, spec: ChaosSpec, { clock = systemClock, random }: ChaosOptions = {}) {
    this.#place = place;
    this.#clock = clock;
    this.#given = random;
    this.set(spec);
    this.resetCounts();
  }

  get now(): number {
    return this.#clock.now() - this.#startedAt;
  }

  get counts(): ChaosCounts {
    return { ...this.#counts, byKind: { ...this.#counts.byKind } };
  }

  set(spec: ChaosSpec): void {
    this.plan = readChaos(spec, this.#place);
    this.spec = spec;
    this.#random = this.#given ?? seededRandom('chaos', this.plan.seed);
    this.#startedAt = this.#clock.now();
    this.#arrived = 0;
  }

  heal(): void {
    const { seed } = this.spec;
    this.set(seed === undefined ? { faults: [] } : { seed, faults: [] });
  }

  resetCounts(): void {
    this.#counts = { subjects: 0, struck: 0, byKind: {} };
  }

  strike(subject: Omit<Subject, 'number'>): Fault | undefined {
    this.#counts.subjects++;
    const number = ++this.#arrived;
    const fault = strike(this.plan, this.#random, this.now, { ...subject, number });
    if (fault) {
      this.#counts.struck++;
      for (const kind of fault.kinds) this.#counts.byKind[kind] = (this.#counts.byKind[kind] ?? 0) + 1;
    }
    return fault;
  }
}
