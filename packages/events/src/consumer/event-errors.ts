import { HoldfastError } from 'holdfast';

/**
 * The payload is not JSON or does not fit its schema, so the event can never be handled. It is parked without a retry.
 */
export class PoisonError extends HoldfastError {
  /** One text per problem, such as `lines.0.price: expected number`. */
  declare readonly issues: readonly string[];

  constructor(issues: readonly string[], options?: ErrorOptions) {
    super('HOLDFAST_POISON', issues.join('; '), options);
    this.issues = issues;
    // The stack would only show code of this library. Without a stack, parked events are grouped by their validation
    // issues.
    this.stack = '';
  }
}

/** A handler throws it when data has changed since it was read. A retry reads the data again. */
export class ConflictError extends HoldfastError {
  constructor(message: string, options?: ErrorOptions) {
    super('HOLDFAST_CONFLICT', message, options);
  }
}

/**
 * The lease of an event has ended, and another consumer may have leased the event. This error is the abort reason of
 * the event's `signal`.
 */
export class LeaseLostError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_LEASE_LOST', `the lease of event ${id} has ended`);
  }
}

/** A rebuild cannot continue, because its ledger is full. Its progress is stored, and it can be resumed. */
export class RebuildError extends HoldfastError {
  constructor(id: string, kind: string | undefined) {
    super('HOLDFAST_REBUILD', `event ${id} cannot be rebuilt: its key in the ledger is ${kind}`);
  }
}

/**
 * The consumer is stopped and its grace time is over. This error is the abort reason of the `signal` of running
 * handlers.
 */
export class ConsumerStoppedError extends HoldfastError {
  constructor(name: string) {
    super('HOLDFAST_CONSUMER_STOPPED', `the consumer ${name} was stopped`);
  }
}

/** The event is parked, because too many processes died while they handled it. */
export class CrashedError extends HoldfastError {
  constructor(deaths: number) {
    super('HOLDFAST_CRASHED', `it was being handled ${deaths} times when a process died`);
    this.stack = '';
  }
}
