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
  /** The server forbids a repetition (`Holdfast: retry=never`, gRPC pushback). */
  readonly retryNever?: boolean | undefined;
  /** True only with proof that the target did not process the attempt: repeating it is safe for any operation. */
  readonly unprocessed?: boolean | undefined;
  /** The target may be overloaded although it gives no hint: a plain 503. */
  readonly overload?: boolean | undefined;
  /** No classifier knows the error: it is fatal only by default. */
  readonly unknown?: boolean | undefined;
  /** A hint that could not be parsed, verbatim. It is reported as a notice. */
  readonly unreadableHint?: string | undefined;
}

/**
 * Classifies an outcome. `undefined` leaves it to the next classifier. `epochMs` is for hints that are dates; call it only
 * for these.
 */
export type Classifier = (outcome: Outcome, epochMs: () => number) => Judgement | OutcomeClass | undefined;

/** A named classifier, as in `retryOn: ['sql']`. */
export interface Pack<Name extends string = string> {
  readonly pack: Name;
  /** True: every policy that has this pack uses it, unless `retryOnly` leaves it out. */
  readonly byDefault?: boolean | undefined;
  readonly classify: Classifier;
  /** True: it classifies returned values, such as responses, as well as errors. */
  readonly values?: boolean | undefined;
}
