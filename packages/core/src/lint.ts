import { assertKnownFields } from './fields.ts';
import { backoffRules } from './lint/backoff-rules.ts';
import { hedgeRules } from './lint/hedge-rules.ts';
import { loadRules } from './lint/load-rules.ts';
import { retryRules } from './lint/retry-rules.ts';
import type { Flaw, LintFacts, Rule, Severity } from './lint/rule.ts';
import { timeRules } from './lint/time-rules.ts';
import { policy } from './policy/all-parts.ts';
import type { PartSettings } from './policy/part-settings.ts';
import type { Policy } from './policy/policy.ts';
import type { PolicySpec } from './policy/policy-spec.ts';

export type { Flaw, LintCase, LintFacts, Rule, Severity, Subject } from './lint/rule.ts';

/** A problem that `lint` found: the broken rule, and the field of the policy that breaks it. */
export interface Finding extends Flaw {
  /** The id of the rule, such as `no-jitter`. */
  readonly rule: string;
  readonly severity: Severity;
  /** Why breaking the rule is bad. */
  readonly sentence: string;
  /** How to change the policy. */
  readonly fix: string;
}

const knownFacts: Readonly<Record<keyof LintFacts, true>> = {
  p999Ms: true,
  typicalMs: true,
  idempotent: true,
  method: true,
  runsKnow: true,
  durable: true,
};

/** All rules, ordered by severity: errors, warnings, advice. */
export const rules: readonly Rule[] = /* @__PURE__ */ bySeverity([
  ...timeRules,
  ...backoffRules,
  ...retryRules,
  ...loadRules,
  ...hedgeRules,
]);

/**
 * Checks a policy or a policy document, and returns the rules that it breaks, the most severe first. Some
 * rules need `facts` about the work. Throws if the document is invalid.
 */
export function lint(subject: Policy | PolicySpec, facts: LintFacts = {}): Finding[] {
  assertKnownFields(knownFacts, facts);
  const { plan, settings } = isPolicy(subject) ? subject : unnamed(subject);
  return rules.flatMap(({ id, severity, sentence, fix, check }) => {
    const flaw = check({ plan, settings: settings as PartSettings, facts });
    return flaw ? [{ rule: id, severity, ...flaw, sentence, fix }] : [];
  });
}

function isPolicy(subject: Policy | PolicySpec): subject is Policy {
  return 'plan' in subject;
}

/**
 * Makes a policy from the document, but without its name. With the name, this temporary policy would replace
 * the real policy of that name in `policies()`.
 */
function unnamed({ name: _, ...spec }: PolicySpec): Policy {
  return policy(spec);
}

function bySeverity(all: readonly Rule[]): readonly Rule[] {
  const order: readonly Severity[] = ['error', 'warning', 'advice'];
  return order.flatMap((severity) => all.filter((rule) => rule.severity === severity));
}
