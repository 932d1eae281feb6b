/** The bounds of the duration histogram, in seconds. */
export const durationBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

export class RouteCounts {
  /** Index 2 counts responses with status 2xx. Index 0 counts requests that the client aborted. */
  readonly statuses: number[] = [0, 0, 0, 0, 0, 0];
  retries = 0;
  /** The number of requests that were refused before they were sent to the upstream. */
  refused = 0;
  fallbacks = 0;
  inFlight = 0;
  bytes = 0;
  durationSum = 0;
  readonly durations: number[] = Array.from({ length: durationBounds.length + 1 }, () => 0);

  get requests(): number {
    return this.statuses.reduce((sum, count) => sum + count, 0);
  }

  record(status: number, wasAborted: boolean, durationMs: number, attempts: number, bytes: number): void {
    const kind = wasAborted ? 0 : Math.floor(status / 100);
    this.statuses[kind] = (this.statuses[kind] ?? 0) + 1;
    if (attempts > 1) this.retries += attempts - 1;
    this.bytes += bytes;
    const seconds = durationMs / 1000;
    this.durationSum += seconds;
    let bucket = 0;
    while (bucket < durationBounds.length && seconds > durationBounds[bucket]!) bucket++;
    this.durations[bucket]!++;
  }
}
