import { type ProcessReport, reportBytesMax } from '@holdfast/contracts';
import type { PolicyState, TargetState } from 'holdfast';
import type { ConsumerState } from '../consumer/consumer.ts';

export interface WholeReport extends Omit<ProcessReport, 'policies' | 'consumers' | 'leftOut'> {
  readonly policies: readonly PolicyState[];
  readonly consumers: readonly ConsumerState[];
}

/**
 * How many targets of each policy the report keeps. The numbers are tried from left to right until the report
 * is small enough.
 */
const targetsKept = [100, 32, 16, 8, 4, 2, 1, 0];

/**
 * Shortens a report until it fits into 8 KiB. It leaves out targets first, then policies, then consumers.
 * Targets that need attention (forced or open breaker, many calls) are the last targets to be left out.
 */
export function fitReport(report: WholeReport): ProcessReport {
  const targets = report.policies.reduce((sum, policy) => sum + policy.targets.length, 0);
  let fitted: ProcessReport = { ...report, leftOut: 0 };
  for (const most of targetsKept) {
    const policies = report.policies
      .map((policy) => ({ ...policy, targets: policy.targets.toSorted(byAttention).slice(0, most) }))
      .sort((a, b) => attention(b.targets[0]) - attention(a.targets[0]));
    const kept = policies.reduce((sum, policy) => sum + policy.targets.length, 0);
    fitted = { ...report, policies, leftOut: targets - kept };
    if (fits(fitted)) return fitted;
  }
  while (!fits(fitted)) {
    const [policies, consumers] = [fitted.policies, fitted.consumers];
    const leftOut = fitted.leftOut + 1;
    if (policies.length > 0) fitted = { ...fitted, policies: policies.slice(0, -1), leftOut };
    else if (consumers.length > 0) fitted = { ...fitted, consumers: consumers.slice(0, -1), leftOut };
    else return { ...fitted, notObeyed: [], leftOut };
  }
  return fitted;
}

function fits(report: ProcessReport): boolean {
  return Buffer.byteLength(JSON.stringify(report)) <= reportBytesMax;
}

function byAttention(a: TargetState, b: TargetState): number {
  return attention(b) - attention(a);
}

function attention(target: TargetState | undefined): number {
  if (!target) return 0;
  const { forced, breaker = 'closed', queued = 0, inFlight } = target;
  if (forced) return 1e9;
  return (breaker === 'closed' ? 0 : 1e6) + queued * 1e3 + inFlight;
}
