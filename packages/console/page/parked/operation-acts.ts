import { ask } from '../api.ts';
import { many } from '../format.ts';
import { tell } from '../toast.tsx';

const lookMs = 250;
const endsWithinMs = 60_000;

/**
 * Undoes a discard, a restore or a keep through its audit entry. It first waits until the operation has
 * ended.
 */
export async function undoOperation(id: string, what: string): Promise<void> {
  try {
    await ended(id);
    const { items } = await ask('GET /audit', { query: { of: `operation:${id}`, what, limit: 1 } });
    const entry = items[0];
    if (!entry) throw new Error(`the audit log has no ${what} ${id}`);
    await ask('POST /audit/:id/undo', { path: { id: entry.id }, body: { why: `undo: ${entry.why}` } });
    tell(`Undone: ${many(entry.count, 'event')}, as before.`);
  } catch (error) {
    tell(`It was not undone: ${(error as Error).message}`);
  }
}

/** Events that the replay has not published yet stay parked. */
export async function stopReplay(id: string): Promise<void> {
  try {
    await ask('POST /replays/:id/stop', { path: { id }, body: { why: 'stopped right after its start' } });
    tell('The replay is stopping. What was not published stays parked.');
  } catch (error) {
    tell((error as Error).message);
  }
}

async function ended(id: string): Promise<void> {
  const until = performance.now() + endsWithinMs;
  for (;;) {
    const { operation } = await ask('GET /replays/:id', { path: { id } });
    if (operation.endedAt !== undefined) return;
    if (performance.now() > until)
      throw new Error('it is still running: stop it first, then undo it from the audit log');
    tell('It is undone as soon as it has ended…');
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}
