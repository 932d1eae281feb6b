import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startGuarded } from './child-guard.ts';

const sleeper = 'setInterval(() => {}, 2 ** 30)';

test('a companion lives as long as the guard, over restarts of its server', async () => {
  const notes = await mkdtemp(path.join(os.tmpdir(), 'holdfast-guard-'));
  const file = path.join(notes, 'pid');
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-guarded-'));
  const companionPid = () => readFile(file, 'utf8').catch(() => '');
  const note = `fs.writeFileSync(process.env.NOTE, String(process.pid)); ${sleeper}`;
  const child = await startGuarded(
    {
      url: '',
      command: [process.execPath, '-e', sleeper],
      companion: [process.execPath, '-e', note],
      environment: { NOTE: file },
      stopSignal: 'SIGTERM',
      isReady: async () => (await companionPid()) !== '',
    },
    { folder, port: 0, user: undefined, settings: {}, isMeasured: false },
  );
  const companion = await companionPid();
  await child.end('kill');
  await child.start();
  expect(await companionPid()).toBe(companion);
  expect(isAlive(Number(companion))).toBe(true);
  await child.remove();
  await expect.poll(() => isAlive(Number(companion))).toBe(false);
  await rm(notes, { recursive: true });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
