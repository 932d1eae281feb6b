import type { PartSettings } from '../policy/part-settings.ts';
import type { Plan } from '../policy/plan.ts';
import type { PolicySpec } from '../policy/policy-spec.ts';

/** `error`: harmful in normal operation. `warning`: harmful when something fails. `advice`: worth a look. */
export type Severity = 'error' | 'warning' | 'advice';

/** Facts about the work that the policy document does not contain. */
export interface LintFacts {
  /** The p99.9 duration of an attempt, in ms. Default: what the policy has measured. */
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
  /** True: each run sets `idempotent: false`, so retries need proof that nothing was processed. Default: `false`. */
  readonly runsKnow?: boolean | undefined;
  /** True: waits are stored, as in an event consumer, so a long wait survives a restart. Default: `false`. */
  readonly durable?: boolean | undefined;
}

/** What a rule checks: a policy with the facts about its work. */
export interface Subject {
  readonly settings: PartSettings;
  readonly plan: Plan;
  readonly facts: LintFacts;
}

/** Which field breaks a rule, and how. */
export interface Flaw {
  /** The field of the document: `backoff.jitter`. */
  readonly path: string;
  /** What was found, with numbers: `4 attempts of 5 s are more than the patience of 10 s`. */
  readonly found: string;
}

/** An example for a rule: a policy document with the facts about its work. */
export interface LintCase {
  readonly spec: PolicySpec;
  readonly facts?: LintFacts;
}

/** One mistake that a policy can contain. */
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
  /** The smallest change of the example that satisfies the rule. */
  readonly fixedBy: Partial<LintCase>;
}

/** Returns the rules unchanged. An incomplete rule does not compile. */
export function defineRules<const R extends readonly Rule[]>(...rules: R): R {
  return rules;
}

/** Whether a second attempt could do the same thing twice. */
export function isUnsafe({ idempotent, method, runsKnow }: LintFacts): boolean {
  if (runsKnow || idempotent === true) return false;
  return idempotent === false || /^(post|patch)$/i.test(method ?? '');
}
