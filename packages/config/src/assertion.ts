import { durationMs, OptionsError } from 'holdfast';
import { readTable } from 'holdfast/fields';
import { type Bound, boundFields, type Metric, metrics } from './scenario.ts';

/** A condition on a figure that a simulation measures, such as `recovery < 30s`. */
export interface Assertion {
  readonly text: string;
  /** The metric, and where and when it is measured: for which clients, at which service, in which time. */
  readonly bound: Bound;
  readonly relation: Relation;
  /** The number to compare with, in the unit of the metric: seconds, a share or a count. */
  readonly limit: number;
  /**
   * For `at 5% failures`: the share of attempts that the simulation lets fail at random, here 0.05. Otherwise
   * undefined.
   */
  readonly failing: number | undefined;
}

/** How a measured figure is compared with the limit. */
export type Relation = '<' | '<=' | '>' | '>=' | '=';

const inSeconds: readonly Metric[] = ['recovery', 'p50', 'p99', 'p999', 'finish'];
/** These metrics are shares, from 0 to 1. */
const shares: readonly Metric[] = ['success', 'wasted', 'share', 'finished'];
const isTrue: Record<Relation, (figure: number, limit: number) => boolean> = {
  '<': (figure, limit) => figure < limit,
  '<=': (figure, limit) => figure <= limit,
  '>': (figure, limit) => figure > limit,
  '>=': (figure, limit) => figure >= limit,
  '=': (figure, limit) => figure === limit,
};
const signs: Record<string, Relation> = { '≤': '<=', '≥': '>=', '==': '=' };
const shapeOf =
  /^(?<metric>[a-zA-Z0-9]+)(?<parts>(?:\s+(?:of|at|from|until|in)\s+\S+)*)\s*(?<relation><=|>=|==|[<>=≤≥])\s*(?<value>[\d.]+)\s*(?<unit>[a-z%]*)(?:\s+at\s+(?<failing>[\d.]+)\s*%\s+failures)?$/;
const form = 'such as "recovery < 30s", "success of web at api from 60s >= 99.5%"';

/** Parses an assertion, such as `recovery < 30s` or `success >= 99.5% at 5% failures`. */
export function parseAssertion(text: string, path = 'assertion'): Assertion {
  const found = shapeOf.exec(text.trim())?.groups;
  if (!found) throw new OptionsError(path, text, `a metric, a relation and a number, ${form}`);
  const { metric = '', parts = '', relation = '', value = '', unit = '', failing } = found;
  if (!(metrics as readonly string[]).includes(metric)) {
    throw new OptionsError(`${path}: the metric`, metric, `one of ${metrics.join(', ')}`);
  }
  const part: Record<string, unknown> = { metric };
  for (const [, word = '', argument = ''] of parts.matchAll(/(of|at|from|until|in)\s+(\S+)/g)) {
    part[partNames[word] as string] =
      word === 'of' || word === 'at' ? argument : momentMs(argument, `${path}: ${word}`);
  }
  return {
    text: text.trim(),
    bound: readTable(boundFields, part, `${path}: `) as Bound,
    relation: signs[relation] ?? (relation as Relation),
    limit: limitOf(metric as Metric, text.trim(), value, unit, path),
    failing: failing === undefined ? undefined : shareOf(failing, path),
  };
}

/**
 * Returns whether a figure meets an assertion. NaN counts as Infinity, so both meet only assertions with `>`
 * or `>=`.
 */
export function holds({ relation, limit }: Assertion, figure: number): boolean {
  return isTrue[relation](Number.isNaN(figure) ? Infinity : figure, limit);
}

const partNames: Record<string, string> = {
  of: 'clients',
  at: 'service',
  from: 'from',
  until: 'until',
  in: 'step',
};

function momentMs(text: string, path: string): number {
  return durationMs(/^[\d.]+$/.test(text) ? `${Number(text)}s` : text, path);
}

function limitOf(metric: Metric, text: string, value: string, unit: string, path: string): number {
  const number = Number(value);
  const wanted = `${path}: the value`;
  if (Number.isNaN(number)) throw new OptionsError(wanted, value, 'a number');
  if (inSeconds.includes(metric)) {
    return unit === '' ? number : durationMs(`${value}${unit}`, wanted) / 1000;
  }
  if (shares.includes(metric) && number > (unit === '%' ? 100 : 1)) {
    const inPercent = text.replace(/([<>=≤≥]\s*[\d.]+)/, '$1%');
    const meant = unit === '' && number <= 100 ? inPercent : undefined;
    throw new OptionsError(wanted, number, 'a share from 0 to 1, or from 0% to 100%', meant);
  }
  if (unit === '%') return number / 100;
  if (unit !== '' && unit !== 'x') throw new OptionsError(wanted, value + unit, `a number, for ${metric}`);
  return number;
}

function shareOf(percent: string, path: string): number {
  const share = Number(percent) / 100;
  if (share >= 0 && share <= 1) return share;
  throw new OptionsError(`${path}: the share of failures`, `${percent}%`, 'between 0% and 100%');
}
