import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { catalog } from './catalog.ts';
import { fakeTimeLibrary, fakeTimePackage } from './fake-time.ts';
import { foreignPrograms } from './foreign-clients.ts';
import { findPrograms } from './programs.ts';

/** Where Debian's browser is; another is named by `CHROMIUM`. */
export const browserPath: string = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** On a build machine that is ours alone, what is missing is installed. */
export function mayInstall(): boolean {
  return process.env.CI === 'true' && process.getuid?.() === 0;
}

/** Debian's packages of all servers, of the browser and of libfaketime, that the tests need and that are not here. */
export function missingPackages(): string[] {
  const servers = Object.values(catalog)
    .filter((recipe) => !process.env[recipe.urlVariable] && recipe.find().missing !== undefined)
    .flatMap(({ debianPackages }) => debianPackages);
  const browser = existsSync(browserPath) ? [] : ['chromium'];
  const clients = Object.entries(foreignPrograms)
    .filter(([program]) => findPrograms([program]).missing !== undefined)
    .map(([, debianPackage]) => debianPackage);
  return [...servers, ...clients, ...browser, ...(fakeTimeLibrary() === undefined ? [fakeTimePackage] : [])];
}

/** All at once, before tests ask for them side by side. `undefined`: it is done; else why not. */
export function install(packages: readonly string[]): string | undefined {
  for (const options of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    const { status, error } = spawnSync('apt-get', ['-q', ...options], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (status !== 0) return `apt-get ${options[0]} failed: ${error?.message ?? status}`;
  }
  return undefined;
}
