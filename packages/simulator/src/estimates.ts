/** One figure over several seeds. A field is null if the event, such as a recovery, never happened. */
export interface Spread {
  readonly median: number | null;
  readonly least: number | null;
  readonly most: number | null;
}

/** For each second: the mean over several seeds, and its 95 % confidence interval from `low` to `high`. */
export interface Band {
  readonly mean: readonly (number | null)[];
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
}

/** Student's t for a two-sided 95 % interval with 1 to 15 degrees of freedom. */
const t95 = [
  12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
];
const NORMAL = 1.96;

/** The median. NaN (nothing was measured) counts as Infinity (the event never happened). */
export function median(figures: readonly number[]): number {
  const sorted = figures.map((each) => (Number.isNaN(each) ? Infinity : each)).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median, the lowest and the highest figure. Null counts as infinite. */
export function spread(figures: readonly (number | null)[]): Spread {
  const known = figures.map((each) => each ?? Infinity);
  return {
    median: finite(median(known)),
    least: finite(Math.min(...known)),
    most: finite(Math.max(...known)),
  };
}

/** For each point of time: the mean over several runs, and its 95 % confidence interval. */
export function band(runs: readonly (readonly (number | null)[])[]): Band {
  const length = Math.max(0, ...runs.map((run) => run.length));
  const points = Array.from({ length }, (_, at) => estimate(runs.map((run) => run[at] ?? null)));
  return {
    mean: points.map(({ mean }) => mean),
    low: points.map(({ low }) => low),
    high: points.map(({ high }) => high),
  };
}

function estimate(values: readonly (number | null)[]): Record<'mean' | 'low' | 'high', number | null> {
  const known = values.filter((each) => each !== null);
  if (known.length === 0) return { mean: null, low: null, high: null };
  const mean = known.reduce((sum, each) => sum + each, 0) / known.length;
  if (known.length === 1) return { mean, low: mean, high: mean };
  const variance = known.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (known.length - 1);
  const error = (t95[known.length - 2] ?? NORMAL) * Math.sqrt(variance / known.length);
  // No figure can be below 0, so the interval ends there.
  return { mean, low: Math.max(0, mean - error), high: mean + error };
}

function finite(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}
