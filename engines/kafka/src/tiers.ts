import { type Duration, durationMs, OptionsError } from 'holdfast';

/**
 * A range of retry delays with its own topic. `orders.retry.10s` is for delays from 10 s up to the next tier.
 */
export interface Tier {
  readonly ms: number;
  readonly label: string;
}

export const defaultTiers: readonly Duration[] = ['1s', '10s', '1m', '10m', '1h'];
const tiersMax = 16;

export function readTiers(given: readonly Duration[]): Tier[] {
  if (!Array.isArray(given) || given.length === 0 || given.length > tiersMax)
    throw new OptionsError('tiers', given, `a list of 1 to ${tiersMax} durations`);
  const lengths = given.map((tier, index) => {
    const ms = durationMs(tier);
    if (!(Number.isInteger(ms) && ms >= 1))
      throw new OptionsError(`tiers[${index}]`, tier, 'a whole number of ms from 1');
    return ms;
  });
  return [...new Set(lengths)].sort((one, other) => one - other).map((ms) => ({ ms, label: labelOf(ms) }));
}

/**
 * Returns the longest tier that is not longer than the delay. So a retry never waits behind retries with a
 * much longer delay.
 */
export function tierFor(tiers: readonly Tier[], delayMs: number): Tier {
  return tiers.findLast(({ ms }) => ms <= delayMs) ?? tiers[0]!;
}

export function tierTopic(topic: string, { label }: Tier): string {
  return `${topic}.retry.${label}`;
}

/** True for the name of a retry topic, such as `orders.retry.10s`. */
export function isTierTopic(name: string): boolean {
  return /\.retry\.\d+(?:ms|s|m|h|d)$/.test(name);
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

function labelOf(ms: number): string {
  const [unit, length] = units.find(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}
