import { openRegistry, registryVariable } from './registry.ts';

/** Vitest calls it once a run, in the process that outlives all test files; what it answers is called in the end. */
export async function setup(): Promise<() => Promise<void>> {
  const registry = await openRegistry();
  process.env[registryVariable] = registry.url;
  return registry.close;
}
