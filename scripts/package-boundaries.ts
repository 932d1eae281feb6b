/**
 * Which room may import which. A room may also import what those below it may: nothing points up.
 * A room that is not here may import nothing, so a new one starts with a line in this table.
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
  simulator: ['core', 'config'],
  cli: ['events', 'simulator', 'sqlite', 'postgres'],
};

/** An engine knows contracts, never another engine nor a room above it. */
const engineArrows = ['contracts'];

export interface Room {
  /** `packages/core`, `engines/redis`. */
  readonly folder: string;
  readonly name: string;
  readonly isEngine: boolean;
}

/** The room that a file of the repository belongs to, if it is in one. */
export function roomOf(path: string): Room | undefined {
  const match = /^(packages|engines)\/([^/]+)\//.exec(path);
  if (match === null) return undefined;
  const [, shelf = '', name = ''] = match;
  return { folder: `${shelf}/${name}`, name, isEngine: shelf === 'engines' };
}

/** The room behind a package name: `holdfast/testing` is core, `@holdfast/http` is http. */
export function roomBehind(specifier: string): string | undefined {
  if (/^holdfast(\/|$)/.test(specifier)) return 'core';
  return /^@holdfast\/([^/]+)/.exec(specifier)?.[1];
}

export function mayImport(room: Room, other: string): boolean {
  if (other === room.name) return true;
  return reachable(room.isEngine ? engineArrows : (arrows[room.name] ?? [])).has(other);
}

function reachable(from: readonly string[], found: Set<string> = new Set()): Set<string> {
  for (const name of from) {
    if (found.has(name)) continue;
    found.add(name);
    reachable(arrows[name] ?? [], found);
  }
  return found;
}
