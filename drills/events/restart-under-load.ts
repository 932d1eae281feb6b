import { setTimeout as pause } from 'node:timers/promises';
import type { OwnServer } from '../../scripts/services/start-service.ts';
import { restartBegins, restartEnds } from './audit.ts';
import { flows } from './flow.ts';
import { openRecord } from './record.ts';
import type { Stage } from './stage.ts';

const WORKERS = 3;

/** Kills and restarts the server in turn while events are published and handled; returns the codes of refused calls. */
export async function restartUnderLoad(
  { place, log, worker, publisher }: Stage,
  server: OwnServer,
  times: number,
  /** How long the server is left alone at first. */
  calmMs = 0,
): Promise<string[]> {
  for (let count = 0; count < WORKERS; count++) worker();
  const refusals = publisher();
  await pause(calmMs);
  const record = await openRecord(place.record);
  for (let count = 0; count < times; count++) {
    must(await flows(log), `events flow before restart ${count + 1} of ${times}, ${refusedIn(refusals)}`);
    await record(restartBegins);
    await server.restart(count % 2 === 0 ? 'kill' : 'stop');
    await record(restartEnds);
  }
  must(await flows(log), `events flow after the last of ${times} restarts, ${refusedIn(refusals)}`);
  return refusals;
}

function refusedIn(refusals: readonly string[]): string {
  return refusals.length === 0
    ? 'no call was refused'
    : `${refusals.length} calls were refused, the last one with ${refusals.at(-1)}`;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A restart promised that ${what}.`);
}
