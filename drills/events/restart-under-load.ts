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
    must(await flows(log), 'events flow while the server is there');
    await record(restartBegins);
    await server.restart(count % 2 === 0 ? 'kill' : 'stop');
    await record(restartEnds);
  }
  must(await flows(log), 'events flow again when the server is back');
  return refusals;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A restart promised that ${what}.`);
}
