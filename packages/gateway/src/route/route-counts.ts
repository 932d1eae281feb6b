/** Upper bounds of the durations that are counted, in seconds. */
export const durationBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** What has happened to the requests of one route. Plain numbers, so that counting costs next to nothing. */
export class RouteCounts {
  /** By the first digit of the status: index 2 are the 2xx. Index 0 are requests that the client gave up. */
  readonly statuses: number[] = [0, 0, 0, 0, 0, 0];
  /** Attempts beyond the first. */
  retries = 0;
  /** Requests that were refused before the upstream was called. */
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
