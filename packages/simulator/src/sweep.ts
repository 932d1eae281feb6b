import { type Bound, parseScenario, type Scenario } from '@holdfast/config';
import { OptionsError, type PolicySpec } from 'holdfast';
import { type Spread, spread } from './estimates.ts';
import type { RunRequest } from './run.ts';
import type { RunPool } from './run-pool.ts';
import { words } from './trial.ts';

/** One setting to vary, and the values to try. */
export interface SweepAxis {
  /** A field of the policy (`policy.backoff.base`) or of the scenario (`clients.web.arrivals.poisson`). */
  readonly path: string;
  readonly values: readonly (string | number | boolean)[];
}

/** One combination of values, and its figure over all seeds. */
export interface SweepCell {
  /** One value for each axis. */
  readonly values: readonly (string | number | boolean)[];
  readonly figure: Spread;
}

/** The figure for each combination of values of one or two settings, as plain JSON. */
export interface Sweep {
  readonly scenario: string;
  readonly policy: string;
  readonly what: string;
  readonly seeds: number;
  readonly axes: readonly SweepAxis[];
  readonly cells: readonly SweepCell[];
}

/** Which settings to vary, and which figure to measure. */
export interface SweepQuestion {
  /** The scenario as parsed YAML or JSON, before validation. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly file: string;
  readonly policy: string;
  readonly policies: ReadonlyMap<string, PolicySpec>;
  readonly axes: readonly SweepAxis[];
  readonly bound: Bound;
  readonly seeds?: number | undefined;
}

const VALUES_MAX = 200;

/**
 * Parses an axis such as `policy.attempts=1..6`, `policy.backoff.base=50ms,200ms,1s` or
 * `clients.web.arrivals.poisson=100/s..500/s+100`.
 */
export function parseAxis(text: string, path = 'axis'): SweepAxis {
  const [, name, list] = /^([\w.[\]-]+)=(.+)$/.exec(text.trim()) ?? [];
  if (name === undefined || list === undefined) {
    throw new OptionsError(path, text, 'a path and values, such as "policy.attempts=1..6"');
  }
  const range = /^(-?[\d.]+?)([a-z/%]*)\.\.(-?[\d.]+)([a-z/%]*)(?:\+([\d.]+))?$/.exec(list);
  const values = range ? rangeOf(range, list, path) : list.split(',').map((each) => readValue(each.trim()));
  if (values.length > VALUES_MAX) throw new OptionsError(path, list, `at most ${VALUES_MAX} values`);
  return { path: name, values };
}

/** Measures the figure for each combination of values, in the worker threads of `pool`. */
export async function sweep(
  { document, file, policy, policies, axes, bound, seeds }: SweepQuestion,
  pool: RunPool,
  onProgress?: (done: number, of: number) => void,
): Promise<Sweep> {
  const grid = combinations(axes.map(({ values }) => values));
  const scenarios = grid.map((values) => varied(document, file, policy, policies, axes, values));
  const requests = scenarios.flatMap((scenario) =>
    seedsOf(scenario, seeds).map(
      (seed): RunRequest => ({ scenario, policy, policies, seed, bounds: [bound] }),
    ),
  );
  const answers = await pool.run(requests, (done) => onProgress?.(done, requests.length));
  const [first] = scenarios;
  const each = requests.length / grid.length;
  return {
    scenario: first?.id ?? '',
    policy,
    what: words(bound),
    seeds: each,
    axes,
    cells: grid.map((values, index) => ({
      values,
      figure: spread(answers.slice(index * each, (index + 1) * each).map(({ figures }) => figures[0]!)),
    })),
  };
}

/** The first `count` seeds of a scenario. If the scenario has fewer, multiples of 7919 are added. */
export function seedsOf({ seeds }: Scenario, count = seeds.length): number[] {
  return Array.from({ length: count }, (_, index) => seeds[index] ?? 7919 * (index + 1));
}

function varied(
  document: SweepQuestion['document'],
  file: string,
  policy: string,
  policies: ReadonlyMap<string, PolicySpec>,
  axes: readonly SweepAxis[],
  values: readonly unknown[],
): Scenario {
  const copy = structuredClone(document) as Record<string, unknown>;
  const own = (copy.policies ?? {}) as Record<string, unknown>;
  copy.policies = own;
  own[policy] = structuredClone(own[policy] ?? policies.get(policy) ?? {});
  for (const [index, { path }] of axes.entries()) {
    const [root, ...rest] = path.split(/[.[\]]+/).filter(Boolean);
    if (root === 'policy') put(own[policy] as object, rest, values[index], path);
    else put(copy, [root!, ...rest], values[index], path);
  }
  return parseScenario(
    JSON.stringify(copy),
    `${file} with ${axes.map(({ path }, index) => `${path}=${values[index]}`).join(', ')}`,
  );
}

function put(into: object, keys: readonly string[], value: unknown, path: string): void {
  if (keys.includes('__proto__')) throw new OptionsError(path, '__proto__', 'the name of a field');
  let place = into as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) {
    const next = Object.hasOwn(place, key) ? place[key] : undefined;
    if (next === undefined || next === true) place[key] = {};
    else if (typeof next !== 'object' || next === null)
      throw new OptionsError(path, next, 'something with fields');
    place = place[key] as Record<string, unknown>;
  }
  const last = keys.at(-1);
  if (last === undefined) throw new OptionsError(path, value, 'the name of a field');
  place[last] = value;
}

function combinations<T>(lists: readonly (readonly T[])[]): T[][] {
  return lists.reduce<T[][]>(
    (all, list) => all.flatMap((each) => list.map((value) => [...each, value])),
    [[]],
  );
}

function rangeOf(
  [, from, unit, until, unitToo, step]: RegExpExecArray,
  text: string,
  path: string,
): (string | number)[] {
  const stride = step === undefined ? 1 : Number(step);
  if ((unit !== unitToo && unit !== '') || !(stride > 0) || !(Number(until) >= Number(from))) {
    throw new OptionsError(path, text, 'a range such as "1..6" or "100ms..500ms+100"');
  }
  // With a step larger than the range, only the first value would be tried. The user cannot want that.
  if (Number(until) > Number(from) && Number(from) + stride > Number(until) + stride / 1e6)
    throw new OptionsError(
      path,
      text,
      `a step that fits into the range, such as "${text.split('+')[0]}+${stepOf(Number(from), Number(until))}"`,
    );
  const values: (string | number)[] = [];
  for (
    let value = Number(from);
    value <= Number(until) + stride / 1e6 && values.length <= VALUES_MAX;
    value += stride
  ) {
    const number = Number(value.toPrecision(10));
    values.push(unitToo === '' ? number : `${number}${unitToo}`);
  }
  return values;
}

function stepOf(from: number, until: number): number {
  return Number.isInteger(from) && Number.isInteger(until) ? 1 : Number(((until - from) / 10).toPrecision(2));
}

function readValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && !Number.isNaN(Number(text)) ? Number(text) : text;
}
