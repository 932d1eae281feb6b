import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const lookMs = 100;

/** What has been fetched or prepared once on this machine, for all checkouts. It may be removed at any time. */
function cacheFolder(): string {
  return path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'holdfast');
}

export function isCached(name: string): boolean {
  return existsSync(path.join(cacheFolder(), name));
}

/** The folder `name` of the cache. If it is not there, `make` fills an empty folder, which gets the name when it is complete. */
export async function cached(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const place = path.join(cacheFolder(), name);
  if (existsSync(place)) return place;
  return exclusively(name, async () => {
    if (existsSync(place)) return place;
    try {
      const draft = await mkdtemp(`${place}.draft-`);
      await make(draft);
      await rename(draft, place);
      return place;
    } finally {
      await removeDrafts(name);
    }
  });
}

/** One process of this machine at a time does the work of this name. */
export async function exclusively<T>(name: string, work: () => Promise<T>): Promise<T> {
  await mkdir(cacheFolder(), { recursive: true });
  const unlock = await lock(path.join(cacheFolder(), `${name}.lock`));
  try {
    return await work();
  } finally {
    await unlock();
  }
}

/** Ours that failed, and those of processes that were killed: the lock is ours, so nobody works on them. */
async function removeDrafts(name: string): Promise<void> {
  const files = await readdir(cacheFolder());
  const drafts = files.filter((file) => file.startsWith(`${name}.draft-`));
  for (const draft of drafts) await rm(path.join(cacheFolder(), draft), { recursive: true, force: true });
}

/** Waits while another living process has the lock. */
async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    const handle = await open(file, 'wx').catch(() => undefined);
    if (handle !== undefined) {
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(file, { force: true });
    }
    if (await isAbandoned(file)) await rm(file, { force: true });
    await pause(lookMs);
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  const owner = await readFile(file, 'utf8').catch(() => '');
  // Empty: it is being written, or was removed just now.
  if (owner === '') return false;
  try {
    return !process.kill(Number(owner), 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
