import { EngineFullError } from '../contract-errors.ts';
import type { OperationCounts } from '../operations.ts';
import { earlierParkings, type NewlyParked, type ParkedEvent } from '../triage.ts';
import type { SharedState } from './shared-state.ts';
import type { MemoryStorage } from './storage.ts';

export function park(shared: SharedState, { keepMs, ...event }: NewlyParked, now: number): boolean {
  const { storage, bounds } = shared;
  const known = storage.parked.get(event.id);
  const failedAgain = known?.operation !== undefined && known.operation === event.replay;
  if (known && !failedAgain && known.status !== 'resolved') return false;
  if (!known && storage.parked.size >= bounds.parkedMax)
    throw new EngineFullError('parked events', bounds.parkedMax);
  if (failedAgain) countOutcome(storage, known, 'failedAgain');
  storage.changes.delete(event.id);
  storage.parked.set(event.id, {
    ...event,
    status: 'parked',
    parkedAt: now,
    parkings: (known?.parkings ?? 0) + 1,
    removedAt: now + (keepMs ?? bounds.keepParkedMs),
    operation: undefined,
    replayedBy: failedAgain ? known.operation : known?.replayedBy,
    version: (known?.version ?? 0) + 1,
    earlier: known ? earlierParkings(known) : [],
    original: known?.original,
    edits: known?.edits ?? [],
    discarded: undefined,
  });
  return true;
}

export function resolve(storage: MemoryStorage, id: string, operation: string | undefined): boolean {
  const event = storage.parked.get(id);
  if (operation === undefined || event?.operation !== operation) return false;
  storage.changes.delete(id);
  storage.parked.set(id, { ...event, status: 'resolved', operation: undefined, replayedBy: operation });
  countOutcome(storage, event, 'succeeded');
  return true;
}

/**
 * Counts the result of a replayed event. If it finishes before its release was recorded, the release is
 * counted here, too.
 */
function countOutcome(
  storage: MemoryStorage,
  event: ParkedEvent,
  outcome: 'succeeded' | 'failedAgain',
): void {
  addCounts(storage, event.operation, { released: event.status === 'replaying' ? 0 : 1, [outcome]: 1 });
}

export function addCounts(
  storage: MemoryStorage,
  id: string | undefined,
  more: Partial<OperationCounts>,
): void {
  const operation = id === undefined ? undefined : storage.operations.get(id);
  if (!operation) return;
  const counts = { ...operation.counts };
  for (const name of Object.keys(more) as (keyof OperationCounts)[]) counts[name] += more[name] ?? 0;
  storage.operations.set(operation.id, { ...operation, counts });
}
