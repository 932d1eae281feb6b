/**
 * Which package may import which. A package may also import what those below it may: nothing points up.
 * A package that is not here may import nothing, so a new one starts with a line in this table.
 */
const arrows: Record<string, readonly string[]> = {
  core: [],
  contracts: ['core'],
  config: ['core'],
  http: ['core'],
  chaos: ['core'],
  telemetry: ['core'],
  server: ['contracts'],
  events: ['contracts'],
  assembly: ['contracts'],
  simulator: ['core', 'config'],
  gateway: ['config', 'http', 'server', 'telemetry', 'sqlite', 'postgres', 'redis'],
  console: ['events'],
  cli: ['assembly', 'console', 'events', 'simulator', 'sqlite', 'postgres', 'gateway'],
};

/** An engine knows contracts, never another engine nor a package above it. */
const engineArrows = ['contracts'];

export interface Package {
  /** `packages/core`, `engines/redis`. */
  readonly folder: string;
  readonly name: string;
  readonly isEngine: boolean;
}

/** The package that a file of the repository belongs to, if it is in one. */
export function packageOf(path: string): Package | undefined {
  const match = /^(packages|engines)\/([^/]+)\//.exec(path);
  if (match === null) return undefined;
  const [, shelf = '', name = ''] = match;
  return { folder: `${shelf}/${name}`, name, isEngine: shelf === 'engines' };
}

/** The package behind a package name: `holdfast/testing` is core, `@holdfast/http` is http. */
export function packageNamed(specifier: string): string | undefined {
  if (/^holdfast(\/|$)/.test(specifier)) return 'core';
  return /^@holdfast\/([^/]+)/.exec(specifier)?.[1];
}

export function mayImport(own: Package, other: string): boolean {
  if (other === own.name) return true;
  return reachable(own.isEngine ? engineArrows : (arrows[own.name] ?? [])).has(other);
}

function reachable(from: readonly string[], found: Set<string> = new Set()): Set<string> {
  for (const name of from) {
    if (found.has(name)) continue;
    found.add(name);
    reachable(arrows[name] ?? [], found);
  }
  return found;
}
