import type { PartSettings } from '../policy/part-settings.ts';
import type { Plan } from '../policy/plan.ts';
import type { PolicySpec } from '../policy/policy-spec.ts';

/**
 * How bad a flaw is. `error`: harmful in normal operation. `warning`: harmful when something fails. `advice`:
 * worth checking.
 */
export type Severity = 'error' | 'warning' | 'advice';

/** Facts about the work that the policy document does not contain. */
export interface LintFacts {
  /** The p99.9 of the duration of an attempt, in ms. Default: what the policy has measured. */
  readonly p999Ms?: number | undefined;
  /** The median duration of an attempt, in ms. Default: what the policy has measured. */
  readonly typicalMs?: number | undefined;
  /**
   * Whether the operation is safe to run twice, by its nature or by an idempotency key. Default: `method` decides;
   * without `method`, true.
   */
  readonly idempotent?: boolean | undefined;
  /** An HTTP method. POST and PATCH are not idempotent unless `idempotent` is true. Default: none. */
  readonly method?: string | undefined;
  /**
   * True: each run sets `idempotent: false`, so an attempt is retried only if the target has not processed
   * it. Default: `false`.
   */
  readonly runsKnow?: boolean | undefined;
  /**
   * True: the work and its waits are stored, as in an event consumer, so they survive a restart. Default:
   * `false`.
   */
  readonly durable?: boolean | undefined;
}

/** What a rule checks: a policy, and facts about the work that it runs. */
export interface Subject {
  readonly settings: PartSettings;
  readonly plan: Plan;
  readonly facts: LintFacts;
}

/** Which field of a document breaks a rule, and how. */
export interface Flaw {
  /** The path of the field in the document: `backoff.jitter`. */
  readonly path: string;
  /** What was found, with numbers: `4 attempts of 5 s are more than the patience of 10 s`. */
  readonly found: string;
}

/** An example for a rule: a policy document, with facts about the work. */
export interface LintCase {
  readonly spec: PolicySpec;
  readonly facts?: LintFacts;
}

/** A rule that `lint` checks. It finds one kind of mistake in a policy. */
export interface Rule {
  readonly id: string;
  readonly severity: Severity;
  /** Why the mistake is bad. */
  readonly sentence: string;
  /** How to correct the mistake. */
  readonly fix: string;
  check(subject: Subject): Flaw | undefined;
  /** A policy that breaks the rule. */
  readonly example: LintCase;
  /** The smallest change of `example` that satisfies the rule. */
  readonly fixedBy: Partial<LintCase>;
}

/** Returns the rules unchanged. With this function, the compiler rejects an incomplete rule. */
export function defineRules<const R extends readonly Rule[]>(...rules: R): R {
  return rules;
}

/** Whether a retry could do harm, because the operation must not run twice. */
export function isUnsafe({ idempotent, method, runsKnow }: LintFacts): boolean {
  if (runsKnow || idempotent === true) return false;
  return idempotent === false || /^(post|patch)$/i.test(method ?? '');
}
