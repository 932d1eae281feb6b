import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Found, SystemUser } from './recipe.ts';

/** Where servers are kept that an ordinary user's PATH does not lead to. */
export const systemFolders: readonly string[] = ['/usr/local/sbin', '/usr/sbin', '/opt/homebrew/sbin'];

/** Finds all of the programs in one of the folders, or on the PATH. */
export function findPrograms(names: readonly string[], folders: readonly string[] = []): Found {
  const places = [...folders, ...(process.env.PATH ?? '').split(path.delimiter)].filter(Boolean);
  const found = names.map((name) => places.map((place) => path.join(place, name)).find(isExecutable));
  const lacking = names.filter((_, index) => found[index] === undefined);
  if (lacking.length > 0) return { missing: `${lacking.join(' and ')} not found` };
  return { programs: Object.fromEntries(names.map((name, index) => [name, found[index]!])) };
}

/** `/usr/lib/postgresql/17/bin` before `…/15/bin`. */
export function versionedFolders(parent: string, below: string): string[] {
  try {
    const versions = readdirSync(parent).filter((name) => /^\d+(\.\d+)*$/.test(name));
    return versions
      .sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a))
      .map((version) => path.join(parent, version, below));
  } catch {
    return []; // not a machine that keeps them there
  }
}

/** A user that is not root, where we are: several servers refuse to run as root. */
export function ordinaryUser(...names: string[]): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of [...names, 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((option) =>
      Number.parseInt(spawnSync('id', [option, name], { encoding: 'utf8' }).stdout, 10),
    );
    if (uid && gid) return { uid, gid };
  }
  throw new Error(`We are root, and there is no user ${names.join(', ')} or nobody to run a server as.`);
}

/** Runs a program to its end. Rejects with what it printed when it fails. */
export function runProgram(
  [program, ...options]: readonly [string, ...string[]],
  { folder, user }: { readonly folder: string; readonly user?: SystemUser | undefined },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], ...user });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${path.basename(program)} ended with ${code}: ${output.trim()}`));
    });
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
