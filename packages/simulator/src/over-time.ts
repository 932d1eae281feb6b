import type { Series } from './series.ts';
import type { CallerTally, ServiceTally } from './tally.ts';

/** Figures of a group of callers, with one element per second. */
export interface CallerSeries {
  readonly offered: readonly number[];
  readonly goodput: readonly number[];
  readonly failed: readonly number[];
  readonly attempts: readonly number[];
  /** Attempts divided by the calls that began in that second; null if none began. */
  readonly multiplication: readonly (number | null)[];
  /** Of the calls that began in that second: the share that succeeded later; null if none began. */
  readonly success: readonly (number | null)[];
  /**
   * For successful calls that ended in that second: percentiles of their duration in seconds; null if none
   * ended.
   */
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
  /** The share of all circuit breakers that are open or half-open. */
  readonly breakersOpen: readonly number[];
}

/** Figures of one service, with one element per second. */
export interface ServiceSeries {
  readonly received: readonly number[];
  readonly completed: readonly number[];
  readonly refused: readonly number[];
  readonly zombies: readonly number[];
  readonly queued: readonly number[];
}

export function callerSeries(tallies: readonly CallerTally[], durationMs: number): CallerSeries {
  const added = (pick: (tally: CallerTally) => Series) =>
    sums(tallies.map((each) => pick(each).seconds(durationMs)));
  const offered = added((each) => each.begun);
  const attempts = added((each) => each.attempts);
  const latency = tallies.map((each) => each.latency.bySecond([0.5, 0.99], durationMs));
  // An average of percentiles is not a percentile, so take the figure of the slowest class of clients.
  const slowest = (share: number) =>
    offered.map((_, second) => most(latency.map((each) => each[share]![second]!)));
  return {
    offered,
    goodput: added((each) => each.succeeded),
    failed: added((each) => each.failed),
    attempts,
    multiplication: ratios(attempts, offered),
    success: ratios(
      added((each) => each.won),
      offered,
    ),
    p50: slowest(0),
    p99: slowest(1),
    breakersOpen: sums(tallies.map((each) => each.breakersOpen)).map((each) => each / tallies.length),
  };
}

export function serviceSeries(tally: ServiceTally, durationMs: number): ServiceSeries {
  return {
    received: tally.received.seconds(durationMs),
    completed: tally.completed.seconds(durationMs),
    refused: tally.refused.seconds(durationMs),
    zombies: tally.zombies.seconds(durationMs),
    queued: tally.queued,
  };
}

function sums(series: readonly (readonly number[])[]): number[] {
  const [first = [], ...others] = series;
  return first.map((value, second) => others.reduce((sum, each) => sum + (each[second] ?? 0), value));
}

function ratios(values: readonly number[], of: readonly number[]): (number | null)[] {
  return values.map((value, second) => (of[second] ? value / of[second] : null));
}

function most(values: readonly (number | null)[]): number | null {
  const known = values.filter((each) => each !== null);
  return known.length === 0 ? null : Math.max(...known);
}
