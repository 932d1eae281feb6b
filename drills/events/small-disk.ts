import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

/** A disk of its own, in memory. Only root may have one. */
export interface SmallDisk {
  readonly folder: string;
  /** Takes all the space that is left. */
  fill(): Promise<void>;
  /** Gives back what `fill` has taken. */
  free(): Promise<void>;
  /** Makes the disk larger. */
  grow(size: string): void;
  remove(): Promise<void>;
}

/** `size` as `mount` understands it: `6m`. */
export async function smallDisk(size: string): Promise<SmallDisk> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-disk-'));
  // Servers that refuse root must get at their data.
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=755`, 'tmpfs', folder]);
  const filler = path.join(folder, 'filler');
  return {
    folder,
    fill: () => writeUntilFull(filler),
    free: () => rm(filler, { force: true }),
    grow: (to) => void execFileSync('mount', ['-o', `remount,size=${to}`, folder]),

    async remove() {
      execFileSync('umount', ['--lazy', folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Why this machine does not let us have one. */
export function whyNoDisk(): string | undefined {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'only root may mount a small disk';
  }
}

async function writeUntilFull(file: string): Promise<void> {
  const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  try {
    // In pieces that become smaller, or the last one would leave its own size free.
    for (let piece = Buffer.alloc(1024 * 1024); piece.length >= 4096; ) {
      try {
        await handle.write(piece);
      } catch (error) {
        if ((error as { code?: string }).code !== 'ENOSPC') throw error;
        piece = piece.subarray(0, piece.length / 2);
      }
    }
  } finally {
    await handle.close();
  }
}
