import { OptionsError } from 'holdfast';
import { duration, either, type Field, number } from 'holdfast/fields';
import type { DelaySpec } from './fault-spec.ts';
import { required, type VariantSettings, variants } from './variants.ts';

const cap = duration('1h');

const distributions = {
  uniform: { min: duration(0), max: required(duration()) },
  exponential: { mean: required(duration()), cap },
  lognormal: { median: required(duration()), sigma: number(1, 0, 10), cap },
  pareto: { min: required(duration()), alpha: number(1.5, 0.1), cap },
};

export type DelaySettings = number | VariantSettings<'distribution', typeof distributions>;

const drawn = variants('distribution', distributions);

/** Reads the option `delay`. A random delay is at most `cap`, which is an hour by default. */
export const delay: Field<DelaySpec, DelaySettings> = either(undefined, duration(), {
  ...drawn,
  read(value, path) {
    const settings = drawn.read(value, path);
    if (settings?.distribution === 'uniform' && settings.max < settings.min) {
      throw new OptionsError(`${path}.max`, settings.max, `at least min, ${settings.min}`);
    }
    return settings;
  },
});

/**
 * Returns a quantile of a random delay, in ms: the share `at` of all delays is shorter. `at` is at least 0
 * and below 1.
 */
export function quantile(delay: DelaySettings, at: number): number {
  if (typeof delay === 'number') return delay;
  switch (delay.distribution) {
    case 'uniform':
      return delay.min + (delay.max - delay.min) * at;
    case 'exponential':
      return Math.min(delay.cap, -delay.mean * Math.log1p(-at));
    case 'lognormal':
      return Math.min(delay.cap, delay.median * Math.exp(delay.sigma * probit(at)));
    case 'pareto':
      return Math.min(delay.cap, delay.min * (1 - at) ** (-1 / delay.alpha));
  }
}

/**
 * Returns the quantile of the standard normal distribution. The error is below 0.00045 (Abramowitz and Stegun
 * 26.2.23).
 */
function probit(at: number): number {
  const tail = Math.max(Math.min(at, 1 - at), Number.MIN_VALUE);
  const t = Math.sqrt(-2 * Math.log(tail));
  const z =
    t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return at < 0.5 ? -z : z;
}
