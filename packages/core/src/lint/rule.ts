import type { PolicySpec } from '../policy/default-policy.ts';
import type { PartSettings } from '../policy/part-settings.ts';
import type { Plan } from '../policy/plan.ts';

/** `error`: it will hurt somebody. `warning`: it will when things go wrong. `advice`: worth a look. */
export type Severity = 'error' | 'warning' | 'advice';

/** What the document cannot say about the work it is for. */
export interface LintFacts {
  /** What all but one attempt in a thousand take, in ms. Not said: what the policy itself has measured. */
  readonly p999Ms?: number | undefined;
  /** What an attempt usually takes, in ms. Not said: what the policy itself has measured. */
  readonly typicalMs?: number | undefined;
  /** Whether running the operation twice is as good as once, by its nature or by an idempotency key. */
  readonly idempotent?: boolean | undefined;
  /** An HTTP method; POST and PATCH are taken not to be idempotent unless that is said. */
  readonly method?: string | undefined;
  /** Each run is told `idempotent: false`, so that only what was provably not processed is repeated. */
  readonly runsKnow?: boolean | undefined;
  /** Waits are stored, as those of a consumer, so that a long one holds nothing up and survives the process. */
  readonly durable?: boolean | undefined;
}

/** What rules look at. */
export interface Subject {
  readonly settings: PartSettings;
  readonly plan: Plan;
  readonly facts: LintFacts;
}

/** Where a rule found something, and what. */
export interface Flaw {
  /** The field of the document: `backoff.jitter`. */
  readonly path: string;
  /** In figures: `4 attempts of 5 s are more than the patience of 10 s`. */
  readonly found: string;
}

/** A policy with the facts about its work. */
export interface LintCase {
  readonly spec: PolicySpec;
  readonly facts?: LintFacts;
}

/** One way in which a policy can be bad. */
export interface Rule {
  readonly id: string;
  readonly severity: Severity;
  /** Why it is bad. */
  readonly sentence: string;
  /** What to do about it. */
  readonly fix: string;
  check(subject: Subject): Flaw | undefined;
  /** A policy that has it. */
  readonly example: LintCase;
  /** The smallest change to the example after which it has it no longer. */
  readonly fixedBy: Partial<LintCase>;
}

/** Fails to compile where a rule is incomplete. */
export function defineRules<const R extends readonly Rule[]>(...rules: R): R {
  return rules;
}

/** Whether a second attempt of the work could do something twice. */
export function isUnsafe({ idempotent, method, runsKnow }: LintFacts): boolean {
  if (runsKnow || idempotent === true) return false;
  return idempotent === false || /^(post|patch)$/i.test(method ?? '');
}
