import type { Settlement } from '@holdfast/contracts';

/** What a consumer has done so far. It counts what the store has taken, not what was meant. */
export class ConsumerCounters {
  /** Handlers that were called. */
  attempts = 0;
  succeeded = 0;
  /** Of those, the ones that needed more than one attempt: what retries were good for. */
  successAfterRetry = 0;
  /** Attempts that failed and will be made again. */
  retryAttempts = 0;
  snoozed = 0;
  parked = 0;
  /** Why, by stop reason. */
  readonly parkedBecause: Record<string, number> = Object.create(null);
  discarded = 0;
  rerouted = 0;
  /** Given back at no cost: at a stop, behind a head that failed, before an open breaker, after a failed probe. */
  returned = 0;
  /** Settlements that came too late. */
  leasesLost = 0;
  /** Effects that had been made before, and were not made again. */
  repeated = 0;

  /** The store has taken a settlement. */
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

  /** The part of the events that came to an end here which ended in the parking lot, 0–1. */
  get dlqRate(): number {
    const ended = this.succeeded + this.parked + this.discarded + this.rerouted;
    return ended > 0 ? this.parked / ended : 0;
  }

  /** Handlers' own words are not a closed list: what is kept of them is. */
  #park(stop: string): void {
    const { parkedBecause } = this;
    const isNew = parkedBecause[stop] === undefined;
    const name = isNew && Object.keys(parkedBecause).length >= stopsMax ? 'other' : stop;
    parkedBecause[name] = (parkedBecause[name] ?? 0) + 1;
    this.parked += 1;
  }
}

const stopsMax = 100;
