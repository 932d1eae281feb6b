import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { cached, exclusively } from './cache.ts';
import { runProgram } from './programs.ts';

/** The jars of one server, each with its checksum. */
export interface JarList {
  /** Names their folder in the cache; it changes with the list. */
  readonly name: string;
  readonly jars: readonly Jar[];
}

interface Jar {
  readonly sha256: string;
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
}

const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';

/** Reads `jars/<server>.txt`: a line has a checksum and a path as repositories of Maven have it, `org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar`. */
export function jarList(server: string): JarList {
  const text = readFileSync(path.join(import.meta.dirname, 'jars', `${server}.txt`), 'utf8');
  const jars = text.trimEnd().split('\n').map(toJar);
  return { name: `${server}-jars-${digest(text).slice(0, 12)}`, jars };
}

/** The folder with the jars. Maven fetches them with its own settings, mirrors and proxies; then the checksums are compared. */
export function cachedJars({ name, jars }: JarList, mvn: string | undefined): Promise<string> {
  return cached(name, async (folder) => {
    const project = await mkdtemp(path.join(os.tmpdir(), 'holdfast-jars-'));
    try {
      const file = path.join(project, 'pom.xml');
      await writeFile(file, projectWith(jars));
      const options = ['-B', '-q', '-f', file, `-DoutputDirectory=${folder}`];
      // Two Mavens must not write to the user's repository at the same time.
      await exclusively('maven', () =>
        runProgram([mvn!, ...options, `${plugin}:copy-dependencies`], { folder: project }),
      );
      await verifyJars(jars, folder);
    } finally {
      await rm(project, { recursive: true, force: true });
    }
  });
}

/** The class path, always in the same order: a class archive is only used with the one it was made with. */
export function classPath(folder: string, { jars }: JarList): string {
  return jars.map((jar) => path.join(folder, fileName(jar))).join(path.delimiter);
}

/** Rejects with the first jar that is not the one in the list. */
export async function verifyJars(jars: readonly Jar[], folder: string): Promise<void> {
  for (const jar of jars) {
    const found = digest(await readFile(path.join(folder, fileName(jar))));
    if (found === jar.sha256) continue;
    throw new Error(`${fileName(jar)} has the checksum ${found}, and ${jar.sha256} was expected`);
  }
}

export function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function toJar(line: string): Jar {
  const [sha256 = '', file = ''] = line.split(' ');
  const [, version = '', artifact = '', ...group] = file.split('/').reverse();
  return { sha256, group: group.reverse().join('.'), artifact, version };
}

/** Every jar by name, and nothing that they would bring along. */
function projectWith(jars: readonly Jar[]): string {
  const nothingElse =
    '<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>';
  const dependencies = jars.map(
    ({ group, artifact, version }) =>
      `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>${nothingElse}</dependency>`,
  );
  return `<project>
    <modelVersion>4.0.0</modelVersion>
    <groupId>holdfast</groupId><artifactId>services</artifactId><version>1</version><packaging>pom</packaging>
    <dependencies>${dependencies.join('\n')}</dependencies>
  </project>`;
}

function fileName({ artifact, version }: Jar): string {
  return `${artifact}-${version}.jar`;
}
