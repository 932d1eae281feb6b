import type { Settlement } from '@holdfast/contracts';

/** Counts what a consumer has done since it started. A settlement is counted when the store has applied it. */
export class ConsumerCounters {
  /** How often the handler was called. */
  attempts = 0;
  succeeded = 0;
  /** How many of the `succeeded` events needed more than one attempt. */
  successAfterRetry = 0;
  /** How many attempts failed and led to a retry. */
  retryAttempts = 0;
  snoozed = 0;
  parked = 0;
  /** The number of parked events by stop reason. After 100 different reasons, new reasons are counted as `other`. */
  readonly parkedBecause: Record<string, number> = Object.create(null);
  discarded = 0;
  rerouted = 0;
  /**
   * How many events were returned to the store without counting an attempt: because the consumer stops, an earlier
   * event of the same key failed, a breaker is open, or a dependency is down.
   */
  returned = 0;
  /** How many leases ended before their event was settled. */
  leasesLost = 0;
  /** How many events this handler had handled before, so that their effect was not repeated. */
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

  /** The share of finished events that were parked (moved to the dead-letter store), 0–1. */
  get dlqRate(): number {
    const ended = this.succeeded + this.parked + this.discarded + this.rerouted;
    return ended > 0 ? this.parked / ended : 0;
  }

  /**
   * Counts a parked event by its stop reason. A handler may give any text as the reason, so the number of reasons is
   * limited.
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
