import { refuseUnknown } from './fields.ts';
import { backoffRules } from './lint/backoff-rules.ts';
import { hedgeRules } from './lint/hedge-rules.ts';
import { loadRules } from './lint/load-rules.ts';
import { retryRules } from './lint/retry-rules.ts';
import type { Flaw, LintFacts, Rule, Severity } from './lint/rule.ts';
import { timeRules } from './lint/time-rules.ts';
import { type PolicySpec, policy } from './policy/default-policy.ts';
import type { PartSettings } from './policy/part-settings.ts';
import type { Policy } from './policy/policy.ts';

export type { Flaw, LintCase, LintFacts, Rule, Severity, Subject } from './lint/rule.ts';

/** Something that is bad about a policy. */
export interface Finding extends Flaw {
  /** The rule's id: `no-jitter`. */
  readonly rule: string;
  readonly severity: Severity;
  /** Why it is bad. */
  readonly sentence: string;
  /** What to do about it. */
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

/** Every rule, the worst first. */
export const rules: readonly Rule[] = /* @__PURE__ */ bySeverity([
  ...timeRules,
  ...backoffRules,
  ...retryRules,
  ...loadRules,
  ...hedgeRules,
]);

/**
 * What is bad about a policy or a document, the worst first; the default policy is good. Facts about the work let it see
 * more. A document that `policy` would refuse is refused here, too.
 */
export function lint(subject: Policy | PolicySpec, facts: LintFacts = {}): Finding[] {
  refuseUnknown(knownFacts, facts);
  const { plan, settings } = isPolicy(subject) ? subject : unnamed(subject);
  return rules.flatMap(({ id, severity, sentence, fix, check }) => {
    const flaw = check({ plan, settings: settings as PartSettings, facts });
    return flaw ? [{ rule: id, severity, ...flaw, sentence, fix }] : [];
  });
}

function isPolicy(subject: Policy | PolicySpec): subject is Policy {
  return 'plan' in subject;
}

/** Without a name, so that it does not take the place of a policy that is in use. */
function unnamed({ name: _, ...spec }: PolicySpec): Policy {
  return policy(spec);
}

function bySeverity(all: readonly Rule[]): readonly Rule[] {
  const order: readonly Severity[] = ['error', 'warning', 'advice'];
  return order.flatMap((severity) => all.filter((rule) => rule.severity === severity));
}
