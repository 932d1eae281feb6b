import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type EnvoyConfiguration, fileNames } from './envoy-configuration.ts';
import type { Resource } from './resource.ts';

export type DynamicFile = 'listeners' | 'routes' | 'clusters';

/** Writes all files of Envoy. They contain private keys, so only the owner can read them. */
export async function writeEnvoyFiles(
  folder: string,
  configuration: EnvoyConfiguration,
  version: string,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await replaceFile(folder, fileNames.bootstrap, configuration.bootstrap);
  for (const name of ['clusters', 'routes', 'listeners'] as const)
    await writeResources(folder, name, configuration[name], version);
}

/** Replaces a file in one step, so that Envoy never reads half of it. */
export async function writeResources(
  folder: string,
  name: DynamicFile,
  resources: readonly Resource[],
  version: string,
): Promise<void> {
  await replaceFile(folder, fileNames[name], { version_info: version, resources });
}

async function replaceFile(folder: string, name: string, content: Resource): Promise<void> {
  const draft = path.join(folder, `.${name}.new`);
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path.join(folder, name));
}
