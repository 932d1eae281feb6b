import { HoldfastError } from 'holdfast';

/** An event that can never be handled: it is not JSON, or does not fit its schema. Parked without a retry. */
export class PoisonError extends HoldfastError {
  /** What is wrong, one line an issue: `lines.0.price: expected number`. */
  declare readonly issues: readonly string[];

  constructor(issues: readonly string[], options?: ErrorOptions) {
    super('HOLDFAST_POISON', issues.join('; '), options);
    this.issues = issues;
    // It would point into this library: what is the same is told by the issues.
    this.stack = '';
  }
}

/** Somebody else changed it first: what was read no longer holds. Tried again, it reads anew. */
export class ConflictError extends HoldfastError {
  constructor(message: string, options?: ErrorOptions) {
    super('HOLDFAST_CONFLICT', message, options);
  }
}

/** The lease of an event has ended, and it may be in other hands. The reason of its `signal`. */
export class LeaseLostError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_LEASE_LOST', `the lease of event ${id} has ended`);
  }
}

/** A rebuild cannot go on: its ledger has no room for another event. What it has done is on record. */
export class RebuildError extends HoldfastError {
  constructor(id: string, kind: string | undefined) {
    super('HOLDFAST_REBUILD', `event ${id} cannot be rebuilt: its key in the ledger is ${kind}`);
  }
}

/** The consumer stops and waits no longer. The reason of a `signal`. */
export class ConsumerStoppedError extends HoldfastError {
  constructor(name: string) {
    super('HOLDFAST_CONSUMER_STOPPED', `the consumer ${name} was stopped`);
  }
}

/** An event was in hand each time a process died. */
export class CrashedError extends HoldfastError {
  constructor(deaths: number) {
    super('HOLDFAST_CRASHED', `it was in hand ${deaths} times when a process died`);
    this.stack = '';
  }
}
