import { SLICE_MS, type Slice } from './clients.ts';

export interface Figures {
  readonly begunPerSecond: number;
  /** Served in time. */
  readonly goodputPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Parts of one. */
  readonly criticalServed: number;
  readonly served: number;
}

/** Figures of calls that began between two seconds. */
export function figuresOf(slices: readonly Slice[], from: number, to: number): Figures {
  const some = slices
    .slice((from * 1000) / SLICE_MS, (to * 1000) / SLICE_MS)
    .filter((slice) => slice !== undefined);
  const sum = (of: (slice: Slice) => number) => some.reduce((all, slice) => all + of(slice), 0);
  const latencies = some.flatMap(({ latenciesMs }) => latenciesMs).sort((a, b) => a - b);
  const quantile = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
  const begun = sum((slice) => slice.begun);
  const served = sum((slice) => slice.served);
  return {
    begunPerSecond: begun / (to - from),
    goodputPerSecond: served / (to - from),
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    criticalServed:
      sum((slice) => slice.criticalServed) /
      Math.max(
        1,
        sum((slice) => slice.criticalBegun),
      ),
    served: served / Math.max(1, begun),
  };
}

/**
 * Seconds after `from` until `holds` is true of all that follows, up to `to`, looked at through a window of so many seconds
 * that moves by halves; Infinity if it never is.
 */
export function settledAfter(
  slices: readonly Slice[],
  from: number,
  to: number,
  holds: (figures: Figures) => boolean,
  windowSeconds = 0.5,
): number {
  let settled = Infinity;
  for (let at = from; at + windowSeconds <= to; at += 0.5) {
    if (!holds(figuresOf(slices, at, at + windowSeconds))) settled = Infinity;
    else if (settled === Infinity) settled = at - from;
  }
  return settled;
}
