import { HoldfastError } from 'holdfast';

/** The payload is not JSON, or does not match its schema. The event is parked without a retry. */
export class PoisonError extends HoldfastError {
  /** One text per problem, such as `lines.0.price: expected number`. */
  declare readonly issues: readonly string[];

  constructor(issues: readonly string[], options?: ErrorOptions) {
    super('HOLDFAST_POISON', issues.join('; '), options);
    this.issues = issues;
    // The stack would show only code of this library. Parked events are grouped by their error, and without a
    // stack the `issues` decide the group.
    this.stack = '';
  }
}

/** A handler throws this error when data has changed since it was read. A retry reads the data again. */
export class ConflictError extends HoldfastError {
  constructor(message: string, options?: ErrorOptions) {
    super('HOLDFAST_CONFLICT', message, options);
  }
}

/**
 * The lease of the event ended before its result was stored, so another consumer may handle the event. This
 * error is the abort reason of `signal`.
 */
export class LeaseLostError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_LEASE_LOST', `the lease of event ${id} has ended`);
  }
}

/**
 * A rebuild cannot continue, because the ledger does not accept the key of an event: for example, the ledger
 * is full. The rebuild can be resumed.
 */
export class RebuildError extends HoldfastError {
  constructor(id: string, kind: string | undefined) {
    super('HOLDFAST_REBUILD', `event ${id} cannot be rebuilt: its key in the ledger is ${kind}`);
  }
}

/**
 * The consumer was stopped. For handlers that run longer than `grace`, this error is the abort reason of
 * `signal`.
 */
export class ConsumerStoppedError extends HoldfastError {
  constructor(name: string) {
    super('HOLDFAST_CONSUMER_STOPPED', `the consumer ${name} was stopped`);
  }
}

/** Processes died too often while they handled this event, so the event is parked. */
export class CrashedError extends HoldfastError {
  constructor(deaths: number) {
    super('HOLDFAST_CRASHED', `it was being handled ${deaths} times when a process died`);
    this.stack = '';
  }
}
