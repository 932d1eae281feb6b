import type { Metric } from '@holdfast/config';
import type { ComparedPolicy, Comparison } from '../comparison.ts';
import type { Finding } from '../trial.ts';
import { show, showSeconds, showShare } from './markup.ts';

const shares: readonly Metric[] = ['success', 'wasted', 'share', 'finished', 'extra'];
const seconds: readonly Metric[] = ['recovery', 'p50', 'p99', 'p999', 'finish'];
const factors: readonly Metric[] = ['multiplication', 'callsPerSuccess', 'surge'];
const rates: readonly Metric[] = ['goodput', 'offered'];

/** Examples: `99.2 %`, `340 ms`, `1.1×`, `270/s`. */
export function showMetric(metric: Metric, figure: number | null): string {
  if (figure === null) return 'never';
  if (shares.includes(metric)) return showShare(figure);
  if (seconds.includes(metric)) return showSeconds(figure);
  if (metric === 'metastable') return figure >= 0.5 ? 'yes' : 'no';
  if (factors.includes(metric)) return `${show(figure)}×`;
  return rates.includes(metric) ? `${show(figure)}/s` : show(figure);
}

/** Examples: `≥ 99 %`, `≤ 30 s`. */
export function limits({ metric, atLeast, atMost }: Pick<Finding, 'metric' | 'atLeast' | 'atMost'>): string {
  return [
    atLeast === null ? '' : `≥ ${showMetric(metric, atLeast)}`,
    atMost === null ? '' : `≤ ${showMetric(metric, atMost)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/**
 * Describes the result in one or two sentences per policy. If the scenario has no bounds (limits for
 * figures), the policy with the highest success comes first.
 */
export function verdict({ policies }: Comparison): string {
  const isBounded = policies.some(({ trial }) => trial.findings.length > 0);
  const ranked = isBounded
    ? policies
    : policies.toSorted((a, b) => figureOf(b, 'success') - figureOf(a, 'success'));
  return ranked
    .flatMap((each) => [(isBounded ? againstBounds : inFigures)(each), ...reservations(each)])
    .join(' ');
}

/** Warns of facts that the figures do not show: the policy only observed, or its fallback answered. */
function reservations(compared: ComparedPolicy): string[] {
  const { document, policy } = compared;
  const mode = document?.mode ?? 'enforce';
  const enforced = mode === 'observe' ? 0 : mode === 'enforce' ? 1 : (mode.enforce ?? 1);
  const answered = figureOf(compared, 'fallbacks') / Math.max(1, figureOf(compared, 'begun'));
  return [
    ...(enforced === 0 ? [`${policy} only observes: nothing is protected, and each call is sent once.`] : []),
    ...(enforced > 0 && enforced < 1
      ? [`${policy} enforces ${showShare(enforced)} of the work, and protects nothing of the rest.`]
      : []),
    ...(answered > 0
      ? [`${showShare(answered)} of the answers of ${policy} are a fallback; that work was not done.`]
      : []),
  ];
}

function againstBounds({ policy, trial: { findings } }: ComparedPolicy): string {
  const missed = findings.filter(({ met }) => !met);
  if (findings.length === 0) return `${policy}: nothing is expected of it.`;
  if (missed.length === 0)
    return `${policy} meets ${findings.length === 1 ? 'the bound' : `all ${findings.length} bounds`}.`;
  const [first] = missed as [Finding];
  const others = missed.length > 1 ? `, and ${missed.length - 1} more` : '';
  return `${policy} misses ${missed.length} of ${findings.length} bounds: ${first.what} is ${showMetric(first.metric, first.figure)}, expected ${limits(first)}${others}.`;
}

function inFigures(compared: ComparedPolicy): string {
  const [success, load] = [figureOf(compared, 'success'), figureOf(compared, 'multiplication')];
  const stuck = figureOf(compared, 'metastable') >= 0.5 ? ' and stays down when the trouble is over' : '';
  return `${compared.policy} gets ${showShare(success)} of the work done with ${show(load)}× the load${stuck}.`;
}

function figureOf({ groups }: ComparedPolicy, key: string): number {
  return groups[0]?.figures[key]?.median ?? 0;
}
