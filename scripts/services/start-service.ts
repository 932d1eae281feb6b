import { chown, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { catalog, type ServiceName } from './catalog.ts';
import { type GuardedChild, startGuarded } from './child-guard.ts';
import { freePort } from './free-port.ts';
import { install, mayInstall } from './install.ts';
import type { Found, Programs, Recipe } from './recipe.ts';

/** A server that is there. */
export interface Server {
  readonly url: string;
  /** `undefined`: it is not ours. */
  readonly pid: number | undefined;
  readonly missing?: undefined;
}

/** A server of our own, to do with as we like. */
export interface OwnServer extends Server {
  readonly pid: number;
  /** For good; its data is gone. */
  stop(): Promise<void>;
  /** The same data and address. `kill`: as after a crash. */
  restart(how: 'stop' | 'kill'): Promise<void>;
  /** Ends it until `start`. */
  end(how: 'stop' | 'kill'): Promise<void>;
  start(): Promise<void>;
}

/** Why there is none. */
export interface Missing {
  readonly missing: string;
}

export interface StartOptions {
  /** Settings of the server itself, in its own words. */
  readonly settings?: Readonly<Record<string, string>>;
  /** For benchmarks: speed under load counts, the time to start does not. */
  readonly isMeasured?: boolean;
  /** Where its data goes; the folder for temporary files unless given. */
  readonly parent?: string;
}

const portTries = 3;

/** The server that the environment names; else one of our own. */
export async function findOrStart(name: ServiceName): Promise<Server | OwnServer | Missing> {
  const url = process.env[catalog[name].urlVariable];
  return url ? { url, pid: undefined } : startOwn(name);
}

/**
 * Starts a server on loopback, on a free port, with its data in a folder that goes when it does. It ends with this process
 * at the latest, however that ends.
 */
export async function startOwn(name: ServiceName, options: StartOptions = {}): Promise<OwnServer | Missing> {
  const recipe = catalog[name];
  const found = await programsOf(recipe);
  if (found.missing !== undefined) {
    return { missing: `${name}: ${found.missing}, and ${recipe.urlVariable} is not set` };
  }
  const { url, child } = await launchOnFreePort(recipe, found.programs, options);
  return {
    url,
    get pid() {
      return child.pid;
    },
    stop: child.remove,
    end: child.end,
    start: child.start,
    async restart(how) {
      await child.end(how);
      await child.start();
    },
  };
}

/** Between the look for a free port and the start of the server, somebody else may take the port. */
async function launchOnFreePort(...launched: Parameters<typeof launch>): ReturnType<typeof launch> {
  for (let triesLeft = portTries; ; triesLeft--) {
    try {
      return await launch(...launched);
    } catch (error) {
      if (triesLeft === 1 || !/address already in use|eaddrinuse/i.test(String(error))) throw error;
    }
  }
}

async function launch(
  recipe: Recipe,
  programs: Programs,
  { settings = {}, isMeasured = false, parent = os.tmpdir() }: StartOptions,
): Promise<{ url: string; child: GuardedChild }> {
  const folder = await mkdtemp(path.join(parent, `holdfast-${recipe.name}-`));
  try {
    const user = recipe.user?.();
    if (user) await chown(folder, user.uid, user.gid);
    const place = { folder, port: await freePort(), user, settings, isMeasured };
    const plan = await recipe.plan(programs, place);
    return { url: plan.url, child: await startGuarded(plan, place) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function programsOf(recipe: Recipe): Promise<Found> {
  const found = installed(recipe);
  if (found.missing !== undefined) return found;
  try {
    return { programs: { ...found.programs, ...(await recipe.fetch?.(found.programs)) } };
  } catch (error) {
    // The first line names the cause; programs go on with advice.
    return { missing: (error as Error).message.split('\n')[0]! };
  }
}

function installed(recipe: Recipe): Found {
  const found = recipe.find();
  if (found.missing === undefined || !mayInstall()) return found;
  const failure = install(recipe.debianPackages);
  return failure === undefined ? recipe.find() : { missing: `${found.missing}, and ${failure}` };
}
