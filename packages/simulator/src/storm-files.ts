import { readdirSync, readFileSync } from 'node:fs';
import { parsePolicies, parseScenario, type Scenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';

/** This folder is in the package, beside `src` and `dist`. */
const folder = new URL('../storms/', import.meta.url);

/**
 * The policies that the scenarios compare: Holdfast's default, naive policies, and those of other libraries.
 */
export function stormPolicies(): ReadonlyMap<string, PolicySpec> {
  return parsePolicies(readFileSync(new URL('policies.yaml', folder), 'utf8'), 'policies.yaml');
}

/** The names of the scenarios in this package, such as `s03` or `s12-codel`. */
export function stormNames(): string[] {
  return readdirSync(folder)
    .filter((file) => /^s\d.*\.yaml$/.test(file))
    .map((file) => file.slice(0, -'.yaml'.length))
    .sort();
}

/** The YAML text of a scenario in this package. Throws if no scenario has this name. */
export function stormText(name: string): string {
  return readFileSync(new URL(`${name}.yaml`, folder), 'utf8');
}

/** Reads a scenario of this package by its name, such as `s03`. */
export function readStorm(name: string): Scenario {
  return parseScenario(stormText(name), `${name}.yaml`);
}
