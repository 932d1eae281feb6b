/** What an attempt gave. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/**
 * What a classifier makes of an outcome.
 *
 * - `ok` the work is done
 * - `transient` it may well succeed when tried again
 * - `throttled` the target asks for less: try again, later than after a plain failure
 * - `fatal` the target answered, and will answer the same again
 * - `ignored` says nothing about the target: the caller left
 */
export type OutcomeClass = 'ok' | 'transient' | 'throttled' | 'fatal' | 'ignored';

/** An outcome with what the classifier read from it. */
export interface Judgement {
  readonly class: OutcomeClass;
  /** The server's own word on when to come back, in ms from now: a floor for the next delay. */
  readonly retryAfterMs?: number | undefined;
  /** The server's own word that it must not be repeated (`Holdfast: retry=never`, gRPC pushback). */
  readonly retryNever?: boolean | undefined;
  /** True only with proof that the target did not process the attempt: repeating it is safe for any operation. */
  readonly unprocessed?: boolean | undefined;
  /** The target may have too much to do, although it does not say when to come back: a plain 503. */
  readonly overload?: boolean | undefined;
  /** No classifier knows the error: it is fatal only because nobody said otherwise. */
  readonly unknown?: boolean | undefined;
  /** A hint that could not be read, verbatim, so that it is reported and not just dropped. */
  readonly unreadableHint?: string | undefined;
}

/**
 * Reads an outcome, or declines with `undefined` so that the next classifier is asked.
 * `epochMs` is for hints that are dates; it is asked only when one is met.
 */
export type Classifier = (outcome: Outcome, epochMs: () => number) => Judgement | OutcomeClass | undefined;

/** A named classifier: what `retryOn: ['sql']` names. */
export interface Pack<Name extends string = string> {
  readonly pack: Name;
  /** True: every policy that has this pack asks it, unless `retryOnly` leaves it out. */
  readonly byDefault?: boolean | undefined;
  readonly classify: Classifier;
  /** True when it judges values, such as responses, as well as errors. */
  readonly values?: boolean | undefined;
}
