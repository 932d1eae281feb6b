import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { DrillOptions } from '../scripts/drill.ts';
import { type Counts, trial } from './events-kill.ts';

const SMALL = '6m';
const LARGE = '64m';
const PAYLOAD = 'x'.repeat(10_000);
const FULL = 'HOLDFAST_SQLITE_FULL';
/** How long events are published and handled on a full disk, and afterwards. */
const FULL_MS = 1500;
const AFTERWARDS_MS = 1500;

/** The disk is filled while events are published and handled, and after a while there is space again. */
export async function drill({ times = 1 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const counts = { events: 0, refused: 0, lost: 0, repeated: 0, outOfOrder: 0 };
  for (let time = 0; time < times; time++) {
    const { events, refused = 0, lost, repeated, outOfOrder } = await full();
    counts.events += events;
    counts.refused += refused;
    counts.lost += lost;
    counts.repeated += repeated;
    counts.outOfOrder += outOfOrder;
  }
  must(
    counts.lost + counts.repeated + counts.outOfOrder === 0,
    `nothing is wrong, got ${JSON.stringify(counts)}`,
  );
  return counts;
}

/** One time. It needs to be root, for a disk of its own that is small. */
export async function full(): Promise<Counts & Record<string, number>> {
  const disk = await mkdtemp(path.join(os.tmpdir(), 'holdfast-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SMALL}`, 'tmpfs', disk]);
  try {
    return await trial('sqlite', path.join(disk, 'events.db'), async ({ broker, publisher, worker }) => {
      await broker.declare('ballast');
      worker();
      const refusals = publisher();
      await pause(FULL_MS / 2);
      await fill(async () => void (await broker.publish('ballast', [{ payload: PAYLOAD, delayMs: 1e9 }])));
      await pause(FULL_MS);
      execFileSync('mount', ['-o', `remount,size=${LARGE}`, disk]);
      const refused = refusals.length;
      must(refused > 0, 'a full disk is noticed');
      for (const code of refusals) must(code === FULL, `it is told as what it is, got ${code}`);
      await pause(AFTERWARDS_MS);
      return { refused };
    });
  } finally {
    execFileSync('umount', ['--lazy', disk]);
    await rm(disk, { recursive: true, force: true });
  }
}

/** Whether this machine lets us have such a disk. */
export function whyNoDisk(): string | undefined {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'only root may mount a small disk';
  }
}

async function fill(add: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await add();
    } catch (error) {
      must((error as { code?: string }).code === FULL, `a full disk is told as what it is, got ${error}`);
      return;
    }
  }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A full disk promised that ${what}.`);
}
