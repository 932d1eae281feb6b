import type { Operation } from '@holdfast/contracts';
import { operations } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';

/** Lets the largest group of parked events happen again: five first, then the rest, at most a hundred a second. */
export async function replayLargestGroup(
  engine: SqliteEngine,
  tell: (line: string) => void,
): Promise<Operation | undefined> {
  const [group] = (await engine.triage.groups({ topic: 'orders' }, { limit: 1 })).items;
  if (!group) return undefined;
  const replays = operations({ engine });
  const filter = { topic: 'orders', fingerprint: group.fingerprint };
  tell(`${await replays.dryRun(filter)} events: ${group.reason}: ${group.message}`);

  const { id } = await replays.begin(
    { kind: 'replay', filter, rate: 100, canary: 5, canaryMs: 200 },
    { who: 'ann', why: 'fixed in 2.3.1' },
  );
  // Ended here by a crash, it goes on where it was when any process calls `run` with the same id.
  return replays.run(id, {
    onProgress: ({ stage, counts }) => tell(`${stage}: ${counts.succeeded} of ${counts.selected}`),
  });
}
