import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Claim, cellOf, type Servers, type Theme } from '../bench/comparison/claim.ts';
import { tableOf } from '../bench/comparison/table.ts';
import { themes } from '../bench/comparison/themes.ts';
import { freshDatabase, trialRunner, trialsOf } from '../bench/comparison/trial-runner.ts';
import { endOnSignal, root } from './command.ts';
import { service } from './services/service.ts';
import { withSections } from './storm-doc.ts';

const pageFile = path.join(root, 'docs/comparison.md');

/** The versions of all peers, as the benchmarks pin them. */
export function versionsText(): string {
  const { devDependencies } = JSON.parse(readFileSync(path.join(root, 'bench/package.json'), 'utf8'));
  const packages = themes.flatMap(({ contestants }) =>
    Object.values(contestants).flatMap((contestant) => contestant.packages),
  );
  return `Tried with ${[...new Set(packages)].map((name) => `${name} ${devDependencies[name]}`).join(', ')}.`;
}

async function sectionOf(theme: Theme, servers: Servers): Promise<string> {
  const run = trialRunner(theme, servers);
  const cells = new Map<Claim, Map<string, string>>();
  for (const claim of theme.claims) {
    const row = new Map<string, string>();
    for (const name of trialsOf(theme, claim)) row.set(name, cellOf(claim, await run(claim, name)));
    cells.set(claim, row);
    console.log(`${claim.sentence}: ${[...row].map(([name, cell]) => `${name} ${cell}`).join(', ')}`);
  }
  return tableOf(theme, (claim, name) => cells.get(claim)!.get(name)!);
}

async function writePage(): Promise<void> {
  const [redis, postgres] = await Promise.all([service('redis'), service('postgres')]);
  if (redis.missing !== undefined) throw new Error(redis.missing);
  if (postgres.missing !== undefined) throw new Error(postgres.missing);
  const database = await freshDatabase(postgres.url);
  const servers = { redisUrl: redis.url, postgresUrl: database.url };
  const sections = new Map([['versions', versionsText()]]);
  try {
    for (const theme of themes) sections.set(theme.name, await sectionOf(theme, servers));
  } finally {
    await database.drop();
  }
  writeFileSync(pageFile, withSections(readFileSync(pageFile, 'utf8'), sections));
}

if (import.meta.main) {
  endOnSignal();
  await writePage();
  // The servers that were started keep the process alive.
  process.exit();
}
