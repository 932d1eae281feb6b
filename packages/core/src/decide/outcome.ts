/** The result of an attempt. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/**
 * The classes of an outcome.
 *
 * - `ok` the work is done
 * - `transient` another attempt may succeed
 * - `throttled` the target asks for fewer calls: wait longer before the retry than after a transient failure
 * - `fatal` the target answered, and would give the same answer again
 * - `ignored` the call was cancelled: the outcome says nothing about the target
 */
export type OutcomeClass = 'ok' | 'transient' | 'throttled' | 'fatal' | 'ignored';

/** The class of an outcome, and other facts that the classifier found. */
export interface Judgement {
  readonly class: OutcomeClass;
  /** In how many ms the server asked to be called again. The next delay is at least this long. */
  readonly retryAfterMs?: number | undefined;
  /**
   * True: the server forbids a retry, with the header `Holdfast: retry=never` or with gRPC's retry pushback.
   */
  readonly retryNever?: boolean | undefined;
  /** True: the target has certainly not processed the attempt, so a retry is safe. */
  readonly unprocessed?: boolean | undefined;
  /** True: the target may be overloaded, for example because it answered with the status 503. */
  readonly overload?: boolean | undefined;
  /** True: the class is `fatal` only because no classifier knows the error. */
  readonly unknown?: boolean | undefined;
  /**
   * A problem to report to the listeners of `subscribe`, and in the story: an unreadable header, or what a
   * classifier threw or returned instead of a class.
   */
  readonly unreadableHint?: string | undefined;
}

/**
 * Classifies an outcome. If it returns undefined, the next classifier is asked. `epochMs` returns the current
 * time, for headers that contain a date.
 */
export type Classifier = (outcome: Outcome, epochMs: () => number) => Judgement | OutcomeClass | undefined;

/** A named classifier for the errors of one protocol or library. `retryOn: ['sql']` refers to it by name. */
export interface Pack<Name extends string = string> {
  readonly pack: Name;
  /** True: every policy uses this pack (named classifier), unless the policy sets `retryOnly`. */
  readonly byDefault?: boolean | undefined;
  readonly classify: Classifier;
  /**
   * True: the pack (named classifier) classifies not only errors, but also returned values, such as HTTP
   * responses.
   */
  readonly values?: boolean | undefined;
}
