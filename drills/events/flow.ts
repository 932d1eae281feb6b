import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/** Lines of the record that must be added before events are said to flow. */
const enough = 60;
const waitMaxMs = 120_000;

/** Resolves when events flow, as the record of the drill shows; false when they do not. */
export async function flows(log: string): Promise<boolean> {
  const before = await linesOf(log);
  for (const until = performance.now() + waitMaxMs; performance.now() < until; await pause(20)) {
    if ((await linesOf(log)) >= before + enough) return true;
  }
  return false;
}

async function linesOf(log: string): Promise<number> {
  return (await readFile(log, 'utf8')).split('\n').length;
}
