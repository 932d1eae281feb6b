import type { ServiceName } from './catalog.ts';
import { registryVariable } from './registry.ts';
import {
  findOrStart,
  type Missing,
  type OwnServer,
  type Server,
  type StartOptions,
  startOwn,
} from './start-service.ts';

/**
 * The server that all tests of this run share, started when the first asks. On a build machine (`CI=true`) a missing one is a
 * failure; elsewhere it is a reason to skip, by name: `describe.skipIf(postgres.missing)(titled('…', postgres), …)`.
 */
export async function service(name: ServiceName): Promise<Server | Missing> {
  const registry = process.env[registryVariable];
  return demanded(registry ? await asked(registry, name) : await findOrStart(name));
}

/** A server for one test alone, that it may stop and kill. It is never the one that the environment names. */
export async function ownService(name: ServiceName, options?: StartOptions): Promise<OwnServer | Missing> {
  return demanded(await startOwn(name, options));
}

/** The title of a suite, with the reason where it is skipped. */
export function titled(title: string, { missing }: { readonly missing?: string | undefined }): string {
  return missing === undefined ? title : `${title} (skipped: ${missing})`;
}

async function asked(registry: string, name: ServiceName): Promise<Server | Missing> {
  const response = await fetch(`${registry}/${name}`);
  return (await response.json()) as Server | Missing;
}

function demanded<T extends Server>(answer: T | Missing): T | Missing {
  if (answer.missing !== undefined && process.env.CI === 'true') throw new Error(answer.missing);
  return answer;
}
