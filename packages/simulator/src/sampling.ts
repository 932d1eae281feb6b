import type { TimeSettings } from '@holdfast/config';
import type { Random } from 'holdfast';

export type Sampler = () => number;

export const none: Sampler = () => 0;

type Amounts = Exclude<TimeSettings, number | undefined>;
type Kind = Omit<Amounts, 'mix'>;

/** Returns a function that draws random durations in µs. Without a description it always returns 0. */
export function sampler(time: TimeSettings | undefined, random: Random): Sampler {
  if (time === undefined) return none;
  if (typeof time === 'object' && isExponential(time)) {
    const { exponential: mean } = time;
    return () => Math.round(-mean * Math.log(1 - random()) * 1000);
  }
  const draw = typeof time === 'number' ? () => time : drawOf(time, random);
  return () => Math.max(0, Math.round(draw() * 1000));
}

/** Most durations are exponential, so these have a faster sampler. */
function isExponential(time: Amounts): time is Amounts & { exponential: number } {
  return time.exponential !== undefined && !time.plus && !time.mix?.length;
}

function drawOf(time: Amounts, random: Random): () => number {
  const mix = time.mix?.map((each) => ({ share: each.share, draw: kindOf(each, random) }));
  if (!mix || mix.length === 0) return kindOf(time, random);
  return () => {
    let roll = random();
    for (const { share, draw } of mix) {
      if (roll < share) return draw();
      roll -= share;
    }
    return mix.at(-1)!.draw();
  };
}

function kindOf(kind: Kind, random: Random): () => number {
  const plus = kind.plus ?? 0;
  const draw = plainly(kind, random);
  return plus > 0 ? () => plus + draw() : draw;
}

function plainly(
  { constant, exponential, lognormal, pareto, uniform, normal, recorded }: Kind,
  random: Random,
): () => number {
  if (exponential !== undefined) return () => -exponential * Math.log(1 - random());
  if (lognormal) {
    const { median, sigma, cap } = lognormal;
    return () => Math.min(cap, median * Math.exp(sigma * gauss(random)));
  }
  if (pareto) {
    const { least, alpha, cap, until } = pareto;
    const share = 1 - (least / until) ** alpha;
    return () => Math.min(cap, least * (1 - random() * share) ** (-1 / alpha));
  }
  if (uniform) return () => uniform.from + (uniform.to - uniform.from) * random();
  if (normal) return () => Math.abs(normal.mean + normal.sd * gauss(random));
  if (recorded && recorded.length > 0) return () => recorded[Math.floor(random() * recorded.length)]!;
  return () => constant ?? 0;
}

function gauss(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Returns a function that draws a key from 0 to `keys` − 1. Low keys are more likely (Zipf's law). */
export function zipf(keys: number, exponent: number, random: Random): () => number {
  const sums = new Float64Array(keys);
  let sum = 0;
  for (let key = 0; key < keys; key++) {
    sum += (key + 1) ** -exponent;
    sums[key] = sum;
  }
  return () => {
    const roll = random() * sum;
    let low = 0;
    let high = keys - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! > roll) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}
