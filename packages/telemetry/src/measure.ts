import type { Notice } from 'holdfast';
import { errorType } from './error-type.ts';
import type { Labels, MetricKey } from './metrics.ts';

/** Receives one measurement: 1 for a counter, seconds for a histogram. */
export type Sink = (metric: MetricKey, labels: Labels, value: number) => void;

/**
 * These stop reasons do not count as a suppressed retry, because no limit of the policy forbade the retry.
 */
const notSuppressed: ReadonlySet<string> = new Set([
  'not_retryable',
  'cancelled',
  'committed',
  'poison',
  'observed',
]);

const expiries: Record<string, string> = {
  HOLDFAST_ATTEMPT_TIMEOUT: 'attempt',
  HOLDFAST_PATIENCE_SPENT: 'patience',
};

/**
 * Returns a function that converts notices (events of policies) to measurements, for Prometheus and
 * OpenTelemetry.
 */
export function measuring(sink: Sink): (notice: Notice) => void {
  /**
   * By call, the number of its attempts that have ended. Only calls whose start was reported are in this map.
   */
  const attemptsSeen = new Map<number, number>();

  function ended(notice: Notice & { type: 'done' | 'gave_up' }): void {
    const { policy, target, attempts, tookMs, type } = notice;
    const outcome = outcomeOf(type, attempts);
    sink('operations', { policy, target, outcome }, 1);
    sink('operationTime', { policy, target, outcome }, tookMs / 1000);
    const abandoned = attempts - (attemptsSeen.get(notice.work) ?? attempts);
    attemptsSeen.delete(notice.work);
    if (abandoned > 0) sink('attempts', { policy, target, class: 'abandoned' }, abandoned);
  }

  function expired({ policy, target }: Pick<Notice, 'policy' | 'target'>, outcome: unknown): void {
    const kind = expiries[errorType(outcome)];
    if (kind !== undefined) sink('timeouts', { policy, target, kind }, 1);
  }

  /**
   * Counts an action that a policy in mode `observe` would have taken. The action did not happen, so no other
   * metric counts it.
   */
  function wouldHave(notice: Notice): void {
    const { policy, target } = notice;
    const count = (kind: string, reason: string) => sink('wouldHave', { policy, target, kind, reason }, 1);
    if (notice.type === 'retry') count('retry', notice.because);
    else if (notice.type === 'refused') count('refuse', notice.because);
    else if (notice.type === 'gave_up') count('stop', notice.because);
    else if (notice.type === 'hedge') count('hedge', 'slow');
    else if (notice.type === 'breaker') count('change_breaker', notice.because);
    const failure = notice.type === 'attempt' && notice.outcome;
    const expiry = failure ? expiries[errorType(failure)] : undefined;
    if (expiry !== undefined) count('time_out', expiry);
  }

  return (notice) => {
    if ('observed' in notice) {
      wouldHave(notice);
      return;
    }
    const { policy, target } = notice;
    switch (notice.type) {
      case 'start':
        attemptsSeen.set(notice.work, 0);
        return;
      case 'attempt': {
        const { class: judged, outcome, tookMs, work } = notice;
        const before = attemptsSeen.get(work);
        if (before !== undefined) attemptsSeen.set(work, before + 1);
        sink('attempts', { policy, target, class: judged }, 1);
        sink('attemptTime', { policy, target, class: judged }, tookMs / 1000);
        if (judged === 'ok' || judged === 'ignored') return;
        sink('attemptFailures', { policy, target, error_type: errorType(outcome) }, 1);
        expired(notice, outcome);
        return;
      }
      case 'retry':
        sink('retries', { policy, target, error_type: errorType(notice.outcome) }, 1);
        sink('backoff', { policy, target }, notice.delayMs / 1000);
        return;
      case 'done':
        ended(notice);
        return;
      case 'gave_up': {
        const { because: reason, attempts } = notice;
        ended(notice);
        sink('failures', { policy, target, reason }, 1);
        if (attempts > 0 && !notSuppressed.has(reason))
          sink('suppressedRetries', { policy, target, reason }, 1);
        // If there was an attempt, the notice of that attempt has already counted the timeout.
        if (attempts === 0) expired(notice, notice.outcome);
        return;
      }
      case 'refused':
        sink('refusals', { policy, target, reason: notice.because }, 1);
        return;
      case 'fallback':
        sink('substitutes', { policy, target, kind: 'fallback' }, 1);
        return;
      case 'cache':
        sink('substitutes', { policy, target, kind: notice.stale ? 'stale' : 'fresh' }, 1);
        return;
      case 'hedge':
        sink('hedges', { policy, target }, 1);
        return;
      case 'zombie':
        sink('zombies', { policy, target }, 1);
        return;
      case 'unreadable_hint':
        sink('unreadableHints', { policy, target }, 1);
        return;
      case 'breaker': {
        const { from, to, because: reason } = notice;
        sink('breakerTransitions', { policy, target, from, to, reason }, 1);
        return;
      }
    }
  };
}

export function outcomeOf(type: 'done' | 'gave_up', attempts: number): string {
  if (type === 'done') return attempts > 1 ? 'succeeded_after_retry' : 'succeeded';
  return attempts > 1 ? 'failed_after_retry' : 'failed';
}
