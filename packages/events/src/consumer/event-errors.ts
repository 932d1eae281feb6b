import { HoldfastError } from 'holdfast';

/** An event that can never be handled: it is not JSON, or does not fit its schema. It is parked without a retry. */
export class PoisonError extends HoldfastError {
  /** What is wrong, one line an issue: `lines.0.price: expected number`. */
  declare readonly issues: readonly string[];

  constructor(issues: readonly string[], options?: ErrorOptions) {
    super('HOLDFAST_POISON', issues.join('; '), options);
    this.issues = issues;
    // The stack would only show this library. Without it, events are grouped by the issues.
    this.stack = '';
  }
}

/** For handlers: the data was changed since it was read. A retry reads it again. */
export class ConflictError extends HoldfastError {
  constructor(message: string, options?: ErrorOptions) {
    super('HOLDFAST_CONFLICT', message, options);
  }
}

/** The lease of an event has ended, and another consumer may have it. The abort reason of its `signal`. */
export class LeaseLostError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_LEASE_LOST', `the lease of event ${id} has ended`);
  }
}

/** A rebuild cannot go on, because its ledger is full. What it has done is stored, and it can be resumed. */
export class RebuildError extends HoldfastError {
  constructor(id: string, kind: string | undefined) {
    super('HOLDFAST_REBUILD', `event ${id} cannot be rebuilt: its key in the ledger is ${kind}`);
  }
}

/** The consumer stops, and the grace time of handlers is over. The abort reason of a `signal`. */
export class ConsumerStoppedError extends HoldfastError {
  constructor(name: string) {
    super('HOLDFAST_CONSUMER_STOPPED', `the consumer ${name} was stopped`);
  }
}

/** An event was being handled each time a process died. */
export class CrashedError extends HoldfastError {
  constructor(deaths: number) {
    super('HOLDFAST_CRASHED', `it was being handled ${deaths} times when a process died`);
    this.stack = '';
  }
}
