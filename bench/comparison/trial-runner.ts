import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Claim, Observed, Servers, Theme } from './claim.ts';

/** Returns what was observed with this contestant. It rejects if the scenario could not be performed. */
export type RunTrial = (claim: Claim, name: string) => Promise<Observed>;

/** Trials that wait for servers and clocks are all started together, when the first result is asked for. */
export function trialRunner(theme: Theme, servers: Partial<Servers>): RunTrial {
  const run: RunTrial = async ({ trials }, name) => {
    const { [name]: trial } = trials;
    if (typeof trial !== 'function') throw new TypeError(`There is no trial of ${name}.`);
    return trial(servers as Servers);
  };
  if (theme.isInTurn) return run;
  let started: Map<string, Promise<Observed>> | undefined;
  const startAll = () => {
    const runs = theme.claims.flatMap((claim) =>
      trialsOf(theme, claim)
        .filter((name) => hasServer(theme, name, servers))
        .map((name): [string, Promise<Observed>] => [`${claim.id} ${name}`, run(claim, name)]),
    );
    // Each failure is told when its result is asked for.
    for (const [, running] of runs) running.catch(() => {});
    return new Map(runs);
  };
  return async ({ id }, name) => {
    started ??= startAll();
    return started.get(`${id} ${name}`)!;
  };
}

/** The contestants that a claim is tried with. */
export function trialsOf(theme: Theme, { trials }: Claim): string[] {
  return Object.keys(theme.contestants).filter((name) => typeof trials[name] === 'function');
}

function hasServer(
  { contestants }: Theme,
  name: string,
  { redisUrl, postgresUrl }: Partial<Servers>,
): boolean {
  const needs = contestants[name]?.needs;
  return (needs !== 'redis' || redisUrl !== undefined) && (needs !== 'postgres' || postgresUrl !== undefined);
}

/** Creates an empty database on this server, so that trials neither see nor leave anything. */
export async function freshDatabase(serverUrl: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `comparison_${randomUUID().replaceAll('-', '')}`;
  const execute = async (statement: string) => {
    const client = new pg.Client(serverUrl);
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await execute(`CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => execute(`DROP DATABASE ${name} WITH (FORCE)`) };
}
