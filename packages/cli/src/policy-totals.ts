import type { Reported } from '@holdfast/events';
import type { PolicyState } from 'holdfast';
import { bad, good } from './styled-text.ts';
import type { Cell } from './table.ts';

/** The sums of what all processes report about one policy. Each process counts from its start. */
export interface PolicyTotals {
  readonly processes: number;
  readonly operations: number;
  /** The share of all operations that succeeded, from 0 to 1; undefined before the first operation. */
  readonly success: number | undefined;
  /**
   * The share of all operations that succeeded only after a retry, from 0 to 1; undefined before the first
   * operation.
   */
  readonly successAfterRetry: number | undefined;
  /** The number of attempts per operation. */
  readonly load: number;
  readonly breakers: { readonly closed: number; readonly halfOpen: number; readonly open: number };
}

export function policyTotals(states: readonly Reported<PolicyState>[]): PolicyTotals {
  const sum = (read: (state: PolicyState) => number) =>
    states.reduce((total, state) => total + read(state), 0);
  const operations = sum(({ counters }) => counters.operations);
  const attempts = sum(({ counters }) => counters.attempts);
  const share = (count: number) => (operations === 0 ? undefined : count / operations);
  const count = (wanted: string) =>
    sum(({ targets }) => targets.filter(({ breaker }) => breaker === wanted).length);
  return {
    processes: new Set(states.map(({ process }) => process.id)).size,
    operations,
    success: share(sum(({ counters }) => successesOf(counters))),
    successAfterRetry: share(sum(({ counters }) => counters.succeededAfterRetry)),
    load: operations === 0 ? 1 : attempts / operations,
    breakers: { closed: count('closed'), halfOpen: count('half-open'), open: count('open') },
  };
}

/** The counter `succeeded` counts only operations that succeeded without a retry. */
export function successesOf({ succeeded, succeededAfterRetry }: PolicyState['counters']): number {
  return succeeded + succeededAfterRetry;
}

export function breakersText({ breakers: { closed, halfOpen, open } }: PolicyTotals): Cell {
  const parts = [
    ...(open > 0 ? [`${open} open`] : []),
    ...(halfOpen > 0 ? [`${halfOpen} half open`] : []),
    ...(closed > 0 ? [`${closed} closed`] : []),
  ];
  if (parts.length === 0) return '-';
  return open > 0 ? bad(parts.join(', ')) : good(parts.join(', '));
}
