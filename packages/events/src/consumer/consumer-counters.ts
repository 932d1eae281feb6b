import type { Settlement } from '@holdfast/contracts';

/** Counts what a consumer has done since its start. */
export class ConsumerCounters {
  attempts = 0;
  succeeded = 0;
  /** How many of the `succeeded` events needed a retry. */
  successAfterRetry = 0;
  retryAttempts = 0;
  snoozed = 0;
  parked = 0;
  /**
   * How many events were parked, by stop reason. After 100 different reasons, new reasons count as `other`.
   */
  readonly parkedBecause: Record<string, number> = Object.create(null);
  discarded = 0;
  rerouted = 0;
  /**
   * How many events went back to the store without a counted attempt, for example because the consumer
   * stopped or a dependency was down.
   */
  returned = 0;
  /** How many leases ended before the result of their event was stored. */
  leasesLost = 0;
  /**
   * How many events were not handled again, because the ledger says that this handler has already handled
   * them.
   */
  repeated = 0;

  count(settlement: Settlement<never>, attempt: number, repeated: boolean): void {
    const { kind } = settlement;
    if (kind === 'ack') {
      this.succeeded += 1;
      if (attempt > 1) this.successAfterRetry += 1;
      if (repeated) this.repeated += 1;
    } else if (kind === 'retry') this.retryAttempts += 1;
    else if (kind === 'snooze') this.snoozed += 1;
    else if (kind === 'return') this.returned += 1;
    else if (kind === 'discard') this.discarded += 1;
    else if (kind === 'reroute') this.rerouted += 1;
    else this.#park(settlement.stop);
  }

  /** The share of finished events that were parked (set aside for an operator), from 0 to 1. */
  get dlqRate(): number {
    const ended = this.succeeded + this.parked + this.discarded + this.rerouted;
    return ended > 0 ? this.parked / ended : 0;
  }

  /**
   * Counts a parked event under its stop reason. A handler may give any text as the reason, so at most
   * `stopsMax` different reasons are counted. Further reasons count as `other`.
   */
  #park(stop: string): void {
    const { parkedBecause } = this;
    const isNew = parkedBecause[stop] === undefined;
    const name = isNew && Object.keys(parkedBecause).length >= stopsMax ? 'other' : stop;
    parkedBecause[name] = (parkedBecause[name] ?? 0) + 1;
    this.parked += 1;
  }
}

const stopsMax = 100;
