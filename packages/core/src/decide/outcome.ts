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

/** The class of an outcome, and what else the classifier found. */
export interface Judgement {
  readonly class: OutcomeClass;
  /** The server's hint when to try again, in ms from now. The next delay is not shorter. */
  readonly retryAfterMs?: number | undefined;
  /** True: the server forbids a retry, by the header `Holdfast: retry=never` or by gRPC's retry pushback. */
  readonly retryNever?: boolean | undefined;
  /** True: it is proven that the target did not process the attempt, so a retry is safe. */
  readonly unprocessed?: boolean | undefined;
  /** True: the target may be overloaded, as with a 503 without Retry-After. */
  readonly overload?: boolean | undefined;
  /** True: no classifier knows the error, so it is `fatal` by default. */
  readonly unknown?: boolean | undefined;
  /** The text of a hint that could not be parsed, for listeners of `subscribe`. */
  readonly unreadableHint?: string | undefined;
}

/**
 * Classifies an outcome. Return undefined to leave it to the next classifier. `epochMs` returns the current time, for
 * hints that are dates.
 */
export type Classifier = (outcome: Outcome, epochMs: () => number) => Judgement | OutcomeClass | undefined;

/** A named classifier for the errors of one protocol or library. `retryOn: ['sql']` refers to it by name. */
export interface Pack<Name extends string = string> {
  readonly pack: Name;
  /** True: the pack is used by default. Only `retryOnly` can leave it out. */
  readonly byDefault?: boolean | undefined;
  readonly classify: Classifier;
  /** True: the pack classifies returned values, such as responses, as well as errors. */
  readonly values?: boolean | undefined;
}
