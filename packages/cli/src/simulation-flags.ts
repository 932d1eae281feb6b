import { existsSync } from 'node:fs';
import {
  type Assertion,
  type Bound,
  ConfigError,
  holds,
  missingPartIn,
  parseAssertion,
  parsePolicies,
  parseScenario,
  readDocument,
  type Scenario,
  underTest,
} from '@holdfast/config';
import { comparedIn, median, stormNames, stormPolicies, stormText } from '@holdfast/simulator';
import { durationMs, OptionsError, type PolicySpec } from 'holdfast';
import { type Flag, type Given, UsageError } from './command.ts';
import { readText } from './files.ts';
import { numberOf } from './given-values.ts';
import type { Terminal } from './terminal.ts';

export const policyFlag: Record<string, Flag> = {
  policy: {
    value: 'name or file',
    many: true,
    says: 'of the scenario, of the storm suite, or a file of policies',
  },
};
export function seedsFlag(fallback: number): Record<string, Flag> {
  return { seeds: { value: 'count', says: `how many runs of each; ${fallback} unless given` } };
}
export const outFlag: Record<string, Flag> = {
  out: { value: 'file.html', says: 'write a report that needs nothing else' },
};

/** A name with a folder or an extension is a file. Other names are scenarios of `@holdfast/simulator`. */
const fileLike = /[/\\]|\.[a-z]+$/i;

export async function scenarioText(given: Given): Promise<{ text: string; file: string }> {
  const [name, ...more] = given.operands;
  if (name === undefined) {
    throw new UsageError(`a scenario is needed: a file, or one of the suite (${stormNames().join(', ')}).`);
  }
  if (more.length > 0) throw new UsageError(`one scenario is enough, got ${given.operands.length}.`);
  const storm = stormNames().find((each) => each.toLowerCase() === name.toLowerCase());
  if (storm !== undefined) return { text: stormText(storm), file: `${storm}.yaml` };
  if (!fileLike.test(name) && !existsSync(name)) {
    throw new UsageError(
      `there is no file and no storm "${name}"; the suite has ${stormNames().join(', ')}.`,
    );
  }
  return { text: await readText(name), file: name };
}

/** `names` are the policies to run. `policies` are all policies that can be run by name. */
export async function policiesOf(
  given: Given,
  scenario: Scenario,
): Promise<{ names: readonly string[]; policies: ReadonlyMap<string, PolicySpec> }> {
  const policies = new Map(stormPolicies());
  const named = given.lists.policy ?? [];
  const names: string[] = [];
  for (const each of named) {
    if (/[./\\]/.test(each)) {
      for (const [name, { name: _, ...spec }] of parsePolicies(await readText(each), each)) {
        policies.set(name, spec);
        names.push(name);
      }
    } else if (Object.hasOwn(scenario.policies, each) || policies.has(each)) names.push(each);
    else throw new UsageError(`--policy: ${noPolicy(each, scenario, policies)}, or say a file.`);
  }
  for (const [place, name] of namedIn(scenario, names)) {
    if (name !== underTest && !Object.hasOwn(scenario.policies, name) && !policies.has(name))
      throw new UsageError(`${scenario.id}: ${place}: ${noPolicy(name, scenario, policies)}.`);
  }
  const chosen = names.length > 0 ? names : comparedIn(scenario);
  return { names: chosen.length > 0 ? [...new Set(chosen)] : ['holdfast'], policies };
}

/** The policies that a run needs, as pairs: a field of the scenario, and the policy that it names. */
function namedIn({ clients, services, compare }: Scenario, named: readonly string[]): [string, string][] {
  const calls = Object.entries(services).flatMap(([name, { calls: its, routes }]) => [
    ...its.map(({ policy }): [string, string] => [`services.${name}.calls`, policy]),
    ...Object.entries(routes).flatMap(([key, route]) =>
      route.calls.map(({ policy }): [string, string] => [`services.${name}.routes.${key}.calls`, policy]),
    ),
  ]);
  return [
    ...Object.entries(clients).map(([name, { policy }]): [string, string] => [
      `clients.${name}.policy`,
      policy,
    ]),
    ...calls,
    ...(named.length > 0 ? [] : compare).map((name): [string, string] => ['compare', name]),
  ];
}

function noPolicy(
  name: string,
  { policies: own }: Scenario,
  others: ReadonlyMap<string, PolicySpec>,
): string {
  const known = [...new Set([...Object.keys(own), ...others.keys()])];
  return `there is no policy "${name}"; there are ${known.join(', ')}`;
}

export function seedCount(given: Given, fallback: number): number {
  const count = numberOf(given, 'seeds') ?? fallback;
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return count;
  throw new UsageError(`--seeds: expected a whole number from 1 to 1000, got "${given.flags.seeds}".`);
}

export function assertionsOf(given: Given): Assertion[] {
  return (given.lists.assert ?? []).map((text) => {
    const assertion = asUsageError(() => parseAssertion(text, '--assert'));
    if (assertion.failing === undefined) return assertion;
    throw new UsageError(
      `--assert: "${text}" is a goal of "holdfast tune"; a scenario says itself how much of it is failing.`,
    );
  });
}

/** Throws a `UsageError` if a bound names clients or a service that the scenario does not have. */
export function assertMeasurable(scenario: Scenario, flag: string, bounds: readonly Bound[]): void {
  for (const bound of bounds) {
    const message = missingPartIn(scenario, bound);
    if (message) throw new UsageError(`${flag}: ${message}.`);
  }
}

/** Throws a `UsageError` in place of an `OptionsError`. */
export function asUsageError<R>(read: () => R): R {
  try {
    return read();
  } catch (error) {
    if (error instanceof OptionsError) throw new UsageError(`${error.message}.`);
    throw error;
  }
}

/** Returns an error message if the assertion does not hold. */
export function broken(assertion: Assertion, policy: string, figures: readonly number[]): string | undefined {
  const figure = median(figures);
  if (holds(assertion, figure)) return undefined;
  const measured = Number.isFinite(figure) ? inUnitOf(assertion, figure) : 'never';
  const seeds = figures.length === 1 ? 'one run' : `the median of ${figures.length} runs`;
  return `${policy}: expected ${assertion.text}, got ${measured} (${seeds}).`;
}

/**
 * Formats a figure in the unit of the assertion: milliseconds for "p99 < 200ms", percent for "success > 99%".
 */
function inUnitOf({ text, failing }: Assertion, figure: number): string {
  const asked = failing === undefined ? text : text.replace(/\s+at\s+[^<>=≤≥]*$/, '');
  const [, unit = ''] = /[\d.]\s*([a-z%]*)$/.exec(asked) ?? [];
  const perUnit = unit === '%' ? 100 : unit === '' || unit === 'x' ? 1 : 1000 / durationMs(`1${unit}`);
  return `${Number((figure * perUnit).toPrecision(4))}${unit}`;
}

/**
 * Returns a function that prints the progress. It prints nothing if the output is not a terminal, or with
 * `--json`.
 */
export function progress(
  terminal: Terminal,
  given: Given,
  what: string,
): (done: number, of: number, more?: string) => void {
  if (!terminal.isInteractive || given.flags.json) return () => {};
  const width = 30;
  return (done, of, more = '') => {
    const full = Math.round((done / of) * width);
    terminal.draw(
      done === of ? '' : `${'█'.repeat(full)}${'░'.repeat(width - full)} ${done} of ${of} ${what}${more}`,
    );
  };
}

/** If the file has policies instead of a scenario, the error names the flag for them. */
export function readScenario({ text, file }: { text: string; file: string }): Scenario {
  if (isOfPolicies(text, file))
    throw new UsageError(
      `${file} is a document of policies, and a scenario is needed; give the policies with --policy ${file}.`,
    );
  return parseScenario(text, file);
}

function isOfPolicies(text: string, file: string): boolean {
  const data = Object(readDocument(text, file).data) as object;
  if (['services', 'clients', 'duration'].some((key) => Object.hasOwn(data, key))) return false;
  if (Object.hasOwn(data, 'policies')) return true;
  try {
    return Object.keys(data).length > 0 && parsePolicies(text, file).size > 0;
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}
