import type { Settlement } from '@holdfast/contracts';

/** What a consumer has done so far. A settlement counts once the store has applied it. */
export class ConsumerCounters {
  /** Calls of the handler. */
  attempts = 0;
  succeeded = 0;
  /** The part of `succeeded` that needed more than one attempt. */
  successAfterRetry = 0;
  /** Attempts that failed and are followed by a retry. */
  retryAttempts = 0;
  snoozed = 0;
  parked = 0;
  /** `parked` by stop reason; after 100 different reasons, new ones count as `other`. */
  readonly parkedBecause: Record<string, number> = Object.create(null);
  discarded = 0;
  rerouted = 0;
  /** Returned without counting an attempt: on stop, behind a failed event of the key, at an open breaker, after a failed probe. */
  returned = 0;
  /** Leases that ended before the event was settled. */
  leasesLost = 0;
  /** Events whose effect had been made before and was not made again. */
  repeated = 0;

  /** Counts a settlement that the store has applied. */
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

  /** The share of finished events that were parked, 0–1. */
  get dlqRate(): number {
    const ended = this.succeeded + this.parked + this.discarded + this.rerouted;
    return ended > 0 ? this.parked / ended : 0;
  }

  /** Handlers may park with any text as the reason, so the number of reasons kept is limited. */
  #park(stop: string): void {
    const { parkedBecause } = this;
    const isNew = parkedBecause[stop] === undefined;
    const name = isNew && Object.keys(parkedBecause).length >= stopsMax ? 'other' : stop;
    parkedBecause[name] = (parkedBecause[name] ?? 0) + 1;
    this.parked += 1;
  }
}

const stopsMax = 100;
