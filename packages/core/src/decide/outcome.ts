/** The result of an attempt. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/**
 * The classes of an outcome.
 *
 * - `ok` the work is done
 * - `transient` another attempt may succeed
 * - `throttled` the target asks for fewer calls: try again, later than after a transient failure
 * - `fatal` the target answered, and would give the same answer again
 * - `ignored` the call was cancelled: the outcome is no evidence about the target
 */
export type OutcomeClass = 'ok' | 'transient' | 'throttled' | 'fatal' | 'ignored';

/** The class of an outcome, with what the classifier read from it. */
export interface Judgement {
  readonly class: OutcomeClass;
  /** The server's hint on when to try again, in ms from now: a minimum for the next delay. */
  readonly retryAfterMs?: number | undefined;
  /** The server forbids a retry, by the header `Holdfast: retry=never` or by gRPC's retry pushback. */
  readonly retryNever?: boolean | undefined;
  /** True only with proof that the target did not process the attempt. Then any operation can be repeated safely. */
  readonly unprocessed?: boolean | undefined;
  /** The target may be overloaded although it does not say when to try again: a plain 503. */
  readonly overload?: boolean | undefined;
  /** True: no classifier knows the error, so it is `fatal` by default. */
  readonly unknown?: boolean | undefined;
  /** A hint that could not be parsed, verbatim. It is published to the listeners of `subscribe`. */
  readonly unreadableHint?: string | undefined;
}

/**
 * Classifies an outcome. `undefined` leaves it to the next classifier. `epochMs` is for hints that are dates; call it
 * only for such hints.
 */
export type Classifier = (outcome: Outcome, epochMs: () => number) => Judgement | OutcomeClass | undefined;

/** A named classifier for the errors of one protocol or library. `retryOn: ['sql']` refers to it by name. */
export interface Pack<Name extends string = string> {
  readonly pack: Name;
  /** True: the pack is used even if `retryOn` does not name it. Only `retryOnly` can leave it out. */
  readonly byDefault?: boolean | undefined;
  readonly classify: Classifier;
  /** True: the pack classifies returned values, such as responses, as well as errors. */
  readonly values?: boolean | undefined;
}
