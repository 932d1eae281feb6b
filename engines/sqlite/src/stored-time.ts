/** The stored due time of an event that waits for a time of day: the store's own clock never reaches it. */
export const never = Number.MAX_SAFE_INTEGER;

/**
 * Converts a time to the stored form: whole milliseconds, rounded up so that nothing happens too early, and at most
 * `never`.
 */
export function toStoredMs(ms: number): number {
  return Math.min(Math.ceil(ms), never);
}
