/** The due time of an event that waits for the wall clock and not for the store's clock. */
export const never = Number.MAX_SAFE_INTEGER;

/** A time as it is stored: whole milliseconds, rounded up so that it is never too early, at most `never`. */
export function toStoredMs(ms: number): number {
  return Math.min(Math.ceil(ms), never);
}
