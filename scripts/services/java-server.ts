import { spawnSync } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { isCached } from './cache.ts';
import { startGuarded } from './child-guard.ts';
import { freePort } from './free-port.ts';
import { cachedJars, classPath, digest, type JarList } from './maven-jars.ts';
import { findPrograms } from './programs.ts';
import type { Found, Place, Plan, Programs, ServerCommand } from './recipe.ts';

const versionMin = 17;

/** The same heap and collector for all. */
const options = ['-Xmx512m', '-XX:+UseSerialGC', '-Djava.awt.headless=true'];

/** Java, and Maven while the jars are not in the cache. */
export function findJava(list: JarList): Found {
  const home = process.env.JAVA_HOME ? [path.join(process.env.JAVA_HOME, 'bin')] : [];
  const found = findPrograms(isCached(list.name) ? ['java'] : ['java', 'mvn'], home);
  if (found.missing !== undefined) return found;
  const [, version = 'unknown'] = /version "([^"]+)"/.exec(versionText(found.programs.java!)) ?? [];
  if (Number.parseInt(version, 10) >= versionMin) return found;
  return {
    missing: `java ${versionMin} or newer not found (the version of ${found.programs.java} is ${version})`,
  };
}

/** Fetches the jars. `prepared` names a folder in the cache for what was made with exactly these jars and this Java. */
export async function fetchJars(
  list: JarList,
  { java, mvn }: Programs,
): Promise<{ jars: string; prepared: string }> {
  const jars = await cachedJars(list, mvn);
  return { jars, prepared: `${list.name}-${digest(`${jars}\n${versionText(java!)}`).slice(0, 12)}` };
}

/** Only the quick compiler: a server that runs for seconds never earns back the time of the other. */
const quickStart = '-XX:TieredStopAtLevel=1';

export interface JavaCommand {
  readonly list: JarList;
  /** With `java`, and the folder `jars`. */
  readonly programs: Programs;
  readonly options?: readonly string[];
  /** Compiled as in production. */
  readonly isMeasured?: boolean;
  readonly main: string;
  readonly parameters?: readonly string[];
}

export function javaCommand(command: JavaCommand): ServerCommand {
  const { list, programs, isMeasured = false, main, parameters = [] } = command;
  const compiler = isMeasured ? [] : [quickStart];
  const jars = ['-cp', classPath(programs.jars!, list)];
  return [programs.java!, ...options, ...compiler, ...(command.options ?? []), ...jars, main, ...parameters];
}

/** Java's option to start with the classes that an earlier run had loaded: it halves the time until a server is ready. */
export function useClassArchive(file: string): string {
  return `-XX:SharedArchiveFile=${file}`;
}

/** Starts the server once and stops it: then Java writes the archive. `plan` must use the option it is given. */
export async function writeClassArchive(
  file: string,
  plan: (option: string, place: Place) => Promise<Plan>,
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-archive-'));
  const place = { folder, port: await freePort(), user: undefined, settings: {}, isMeasured: false };
  const child = await startGuarded(await plan(`-XX:ArchiveClassesAtExit=${file}`, place), place);
  await child.end('stop');
  await child.remove();
}

function versionText(java: string): string {
  return spawnSync(java, ['-version'], { encoding: 'utf8' }).stderr;
}
