import { replayed } from '../advance-operation.ts';
import {
  assertOperation,
  assertOperationChange,
  assertUndoableOperation,
  beginEntry,
  coveredBy,
  movedOperation,
  moveEntry,
  newOperation,
  type Operation,
  type Operations,
} from '../operations.ts';
import type { Place } from '../page.ts';
import { matches } from '../parked-filter.ts';
import type { ParkedEvent } from '../triage.ts';
import { writeAudit } from './audit.ts';
import { addCounts } from './parking.ts';
import { latestFirst, pageOf, type SharedState } from './shared-state.ts';

export function memoryOperations(shared: SharedState): Operations {
  const { storage } = shared;

  /**
   * Returns the parked events (set aside for an operator) that an operation still has to process, the
   * earliest parked first.
   */
  function coveredEvents(operation: Operation): ParkedEvent[] {
    const { request, startedAt } = operation;
    const filter = coveredBy(operation);
    const events = [...storage.parked.values()].sort((a, b) => (isAfter(placeOf(a), placeOf(b)) ? 1 : -1));
    if (request.kind === 'undo')
      return events.filter(
        ({ id, operation }) => operation === undefined && storage.changes.get(id)?.operation === request.of,
      );
    return events.filter((event) => event.parkedAt <= startedAt && matches(filter!, event));
  }

  function selectedBy(id: string): ParkedEvent[] {
    return [...storage.parked.values()].filter(
      (event) => event.operation === id && event.status === 'parked',
    );
  }

  function undoOf(id: string): Operation | undefined {
    return [...storage.operations.values()].find(
      ({ request }) => request.kind === 'undo' && request.of === id,
    );
  }

  function changeOf(operation: Operation, event: ParkedEvent, now: number): Partial<ParkedEvent> {
    const { request, act, startedAt } = operation;
    const discarded = { status: 'discarded', discarded: { ...act, at: now } } as const;
    const restored = { status: 'parked', discarded: undefined } as const;
    switch (request.kind) {
      case 'discard':
        return discarded;
      case 'restore':
        return restored;
      case 'keep':
        return { removedAt: startedAt + request.keepMs };
      case 'undo':
        switch (storage.operations.get(request.of)?.request.kind) {
          case 'discard':
            return restored;
          case 'restore':
            return discarded;
          default:
            return { removedAt: storage.changes.get(event.id)?.removedAt ?? event.removedAt };
        }
      case 'replay':
        return {};
    }
  }

  return {
    async begin(request, act, id) {
      assertOperation(request, act, id);
      return shared.write((now) => {
        const stored = id === undefined ? undefined : storage.operations.get(id);
        if (stored) return stored;
        if (request.kind === 'undo')
          assertUndoableOperation(request.of, storage.operations.get(request.of), undoOf(request.of)?.id);
        const operation = newOperation(id ?? shared.newId(), request, act, now);
        writeAudit(shared, beginEntry(operation));
        storage.operations.set(operation.id, operation);
        return operation;
      });
    },

    async get(id) {
      return storage.operations.get(id);
    },

    async list({ kind, unfinished = false }, page) {
      const found = [...storage.operations.values()]
        .filter(({ request }) => kind === undefined || request.kind === kind)
        .filter(({ endedAt }) => !unfinished || endedAt === undefined)
        .sort((a, b) => (latestFirst([a.startedAt, a.id], [b.startedAt, b.id]) ? 1 : -1));
      return pageOf(found, page, ({ startedAt, id }) => [startedAt, id], latestFirst);
    },

    async move(id, version, change) {
      assertOperationChange(change);
      return shared.write((now) => {
        const operation = storage.operations.get(id);
        if (operation?.version !== version) return undefined;
        const entry = moveEntry(operation, change);
        if (entry) writeAudit(shared, entry);
        const moved = movedOperation(operation, change, now);
        storage.operations.set(id, moved);
        return moved;
      });
    },

    async apply(id, limit) {
      return shared.write((now) => {
        const operation = storage.operations.get(id);
        if (operation?.stage !== 'applying') return 0;
        const from = storage.positions.get(id);
        const chosen = coveredEvents(operation)
          .filter((event) => !from || isAfter(placeOf(event), from))
          .slice(0, limit);
        for (const event of chosen) {
          const changed = { ...event, ...changeOf(operation, event, now) };
          storage.parked.set(event.id, changed);
          storage.changes.set(event.id, { operation: id, removedAt: event.removedAt });
        }
        const last = chosen.at(-1);
        if (last) storage.positions.set(id, placeOf(last));
        addCounts(storage, id, { changed: chosen.length });
        return chosen.length;
      });
    },

    async select(id, limit) {
      return shared.write(() => {
        const operation = storage.operations.get(id);
        if (operation?.stage !== 'selecting') return 0;
        const chosen = coveredEvents(operation).slice(0, limit);
        for (const event of chosen) storage.parked.set(event.id, { ...event, operation: id });
        addCounts(storage, id, { selected: chosen.length });
        return chosen.length;
      });
    },

    async unselect(id, limit) {
      return shared.write(() => {
        const chosen = selectedBy(id).slice(0, limit);
        for (const event of chosen) storage.parked.set(event.id, { ...event, operation: undefined });
        addCounts(storage, id, { selected: -chosen.length });
        return chosen.length;
      });
    },

    async release(id, limit, publish) {
      const request = storage.operations.get(id)?.request;
      if (request?.kind !== 'replay') return 0;
      const chosen = selectedBy(id)
        .sort((a, b) => a.parkedAt - b.parkedAt)
        .slice(0, limit);
      for (const [topic, events] of Map.groupBy(chosen, (event) => request.to ?? event.topic)) {
        await publish(
          topic,
          events.map((event) => replayed(event, id)),
        );
      }
      shared.write(() => {
        const unheard = chosen.filter((event) => storage.parked.get(event.id) === event);
        for (const event of unheard) {
          storage.changes.delete(event.id);
          storage.parked.set(event.id, { ...event, status: 'replaying', replayedBy: id });
        }
        addCounts(storage, id, { released: unheard.length });
      });
      return chosen.length;
    },
  };
}

function placeOf({ parkedAt, id }: ParkedEvent): Place {
  return [parkedAt, id];
}

function isAfter(place: Place, other: Place): boolean {
  return latestFirst(other, place);
}
