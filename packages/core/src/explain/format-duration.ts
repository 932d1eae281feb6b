const units = [
  { ms: 864e5, name: 'd' },
  { ms: 36e5, name: 'h' },
  { ms: 6e4, name: 'min' },
  { ms: 1e3, name: 's' },
];

/**
 * Formats milliseconds in a readable unit, with whole milliseconds or three significant digits: `34 ms`, `1.5
 * s`, `10 min`.
 */
export function formatMs(ms: number): string {
  if (ms === Infinity) return 'no limit';
  const unit = units.find((each) => ms >= each.ms);
  if (unit) return `${round(ms / unit.ms)} ${unit.name}`;
  return `${ms < 1 ? round(ms) : Math.round(ms)} ms`;
}

/** Rounds to three significant digits. Numbers from 100 on are rounded to whole numbers. */
export function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}
