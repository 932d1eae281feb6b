/** The description of a metric, for Prometheus, OpenTelemetry and the documentation. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'histogram' | 'gauge';
  readonly labels: readonly Label[];
  readonly help: string;
}

/**
 * The names of labels. The values of `policy`, `target` and `error_type` come from users and servers, so
 * `LabelSets` limits their number.
 */
export type Label =
  | 'policy'
  | 'target'
  | 'error_type'
  | 'reason'
  | 'outcome'
  | 'class'
  | 'kind'
  | 'from'
  | 'to'
  | 'state'
  | 'metric'
  | 'consumer'
  | 'topic'
  | 'server'
  | 'part'
  | 'priority'
  | 'when'
  | 'how';

/**
 * The labels of a sample. A label without a value is left out, for example the `policy` of a policy without a
 * name.
 */
export type Labels = { readonly [label in Label]?: string | undefined };

export type MetricKey = keyof typeof metrics;

/** Every metric of policies, with its name, type, labels and help text. */
export const metrics = {
  operations: {
    name: 'holdfast_operations_total',
    type: 'counter',
    labels: ['policy', 'target', 'outcome'],
    help: 'Pieces of work that ended: succeeded, succeeded_after_retry, failed, failed_after_retry.',
  },
  attempts: {
    name: 'holdfast_attempts_total',
    type: 'counter',
    labels: ['policy', 'target', 'class'],
    help: 'Attempts that ended, by class; abandoned: the work ended before the attempt did.',
  },
  attemptFailures: {
    name: 'holdfast_attempt_failures_total',
    type: 'counter',
    labels: ['policy', 'target', 'error_type'],
    help: 'Attempts that failed, by type of error.',
  },
  retries: {
    name: 'holdfast_retries_total',
    type: 'counter',
    labels: ['policy', 'target', 'error_type'],
    help: 'Retries that were decided on, by the type of error that led to them.',
  },
  failures: {
    name: 'holdfast_failures_total',
    type: 'counter',
    labels: ['policy', 'target', 'reason'],
    help: 'Pieces of work that ended without success, by stop reason.',
  },
  suppressedRetries: {
    name: 'holdfast_suppressed_retries_total',
    type: 'counter',
    labels: ['policy', 'target', 'reason'],
    help: 'Retries that the failure allowed and something else forbade, by stop reason.',
  },
  refusals: {
    name: 'holdfast_refusals_total',
    type: 'counter',
    labels: ['policy', 'target', 'reason'],
    help: 'Attempts that a part of the policy refused before they were sent.',
  },
  timeouts: {
    name: 'holdfast_timeouts_total',
    type: 'counter',
    labels: ['policy', 'target', 'kind'],
    help: 'Times that ran out: of an attempt, or of all patience.',
  },
  hedges: {
    name: 'holdfast_hedges_total',
    type: 'counter',
    labels: ['policy', 'target'],
    help: 'Second attempts that were started beside a first.',
  },
  substitutes: {
    name: 'holdfast_substitutes_total',
    type: 'counter',
    labels: ['policy', 'target', 'kind'],
    help: 'Answers in the place of a result of the work: from a fallback, or fresh or stale from the cache.',
  },
  zombies: {
    name: 'holdfast_zombies_total',
    type: 'counter',
    labels: ['policy', 'target'],
    help: 'Calls that nobody waits for and that outlived the lease of their permit.',
  },
  breakerTransitions: {
    name: 'holdfast_breaker_transitions_total',
    type: 'counter',
    labels: ['policy', 'target', 'from', 'to', 'reason'],
    help: 'Changes of state of breakers.',
  },
  unreadableHints: {
    name: 'holdfast_unreadable_hints_total',
    type: 'counter',
    labels: ['policy', 'target'],
    help: 'Hints of servers on when to come back that could not be read.',
  },
  wouldHave: {
    name: 'holdfast_would_have_total',
    type: 'counter',
    labels: ['policy', 'target', 'kind', 'reason'],
    help: 'What policies that only observe would have done: retry, refuse, stop, time_out, hedge, change_breaker.',
  },
  labelOverflows: {
    name: 'holdfast_label_overflows_total',
    type: 'counter',
    labels: ['metric'],
    help: 'Measurements whose labels became other, because the metric has as many label sets as it may.',
  },
  backoff: {
    name: 'holdfast_backoff_seconds',
    type: 'histogram',
    labels: ['policy', 'target'],
    help: 'How long retries wait.',
  },
  attemptTime: {
    name: 'holdfast_attempt_seconds',
    type: 'histogram',
    labels: ['policy', 'target', 'class'],
    help: 'How long attempts take; abandoned ones are not in it.',
  },
  operationTime: {
    name: 'holdfast_operation_seconds',
    type: 'histogram',
    labels: ['policy', 'target', 'outcome'],
    help: 'How long work takes, with all its attempts and waits.',
  },
  breakerState: {
    name: 'holdfast_breaker_state',
    type: 'gauge',
    labels: ['policy', 'target', 'state'],
    help: '1 for the state that a breaker is in, 0 for the others.',
  },
  budgetTokens: {
    name: 'holdfast_budget_tokens',
    type: 'gauge',
    labels: ['policy', 'target'],
    help: 'Retries that the budget would pay for now.',
  },
  inFlight: {
    name: 'holdfast_in_flight_attempts',
    type: 'gauge',
    labels: ['policy', 'target'],
    help: 'Attempts that have been sent and have not ended.',
  },
  queued: {
    name: 'holdfast_queued_attempts',
    type: 'gauge',
    labels: ['policy', 'target'],
    help: 'Attempts that wait in the queue of a bulkhead.',
  },
  killSwitch: {
    name: 'holdfast_kill_switch',
    type: 'gauge',
    labels: ['policy'],
    help: '1 while retries and hedges of the policy are switched off by hand.',
  },
  enforcedRatio: {
    name: 'holdfast_enforced_ratio',
    type: 'gauge',
    labels: ['policy'],
    help: 'The share of the work on which the policy acts; 0 for one that only observes.',
  },
} as const satisfies Record<string, Metric>;

export const metricKeys = Object.keys(metrics) as readonly MetricKey[];

/** The default upper bounds of the histogram buckets, in seconds. */
export const defaultBucketsSeconds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** The label value that replaces new values when a metric has too many label sets. */
export const OTHER = 'other';
