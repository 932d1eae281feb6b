/** The due time of an event that waits for a wall-clock time. The store's clock never reaches it. */
export const never = Number.MAX_SAFE_INTEGER;

/** Rounds up to whole milliseconds, so that nothing happens too early. */
export function toStoredMs(ms: number): number {
  return Math.min(Math.ceil(ms), never);
}
