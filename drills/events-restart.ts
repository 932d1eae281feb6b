import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import type { OwnServer } from '../scripts/services/start-service.ts';
import { restartUnderLoad } from './events/restart-under-load.ts';
import { type Counts, trial } from './events-kill.ts';

const UNAVAILABLE = 'HOLDFAST_POSTGRES_UNAVAILABLE';

/** PostgreSQL is killed and restarted in turn while events are published and handled. */
export async function drill({ times = 20 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const server = await ownService('postgres');
  if (server.missing !== undefined) throw new Error(`The drill needs PostgreSQL: ${server.missing}.`);
  try {
    const counts = await restarts(server, times);
    const wrong = counts.lost + counts.repeated + counts.outOfOrder;
    must(wrong === 0, `nothing is lost, repeated or out of order, got ${JSON.stringify(counts)}`);
    return counts;
  } finally {
    await server.stop();
  }
}

export async function restarts(server: OwnServer, times: number): Promise<Counts & Record<string, number>> {
  return trial('postgres', server.url, async (stage) => {
    const refusals = await restartUnderLoad(stage, server, times);
    for (const code of refusals) must(code === UNAVAILABLE, `it is told as what it is, got ${code}`);
    return { restarts: times, refused: refusals.length };
  });
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`A restart promised that ${what}.`);
}
