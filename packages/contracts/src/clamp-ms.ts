/** 140,000 years: from now on, and twice over, a `bigint` and a JavaScript number hold it exactly. */
const spanMaxMs = 2 ** 52;

/** For engines: a time, or a span of it, as a store that counts in whole numbers can hold it. What never ends has to end somewhere. */
export function clampMs(ms: number): number {
  return Math.max(-spanMaxMs, Math.min(ms, spanMaxMs));
}
