const steps = [
  [864e5, 'd'],
  [36e5, 'h'],
  [6e4, 'm'],
  [1e3, 's'],
] as const;

/** Formats a duration in the largest unit that fits: `3h`, `12s`. */
export function spanText(ms: number): string {
  const [unitMs, unit] = steps.find(([each]) => ms >= each) ?? [1, 'ms'];
  return `${Math.floor(Math.max(0, ms) / unitMs)}${unit}`;
}
