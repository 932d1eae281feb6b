import { initialReplayState, replayed } from '../advance-replay.ts';
import { assertFilterNotEmpty, assertReason, matches } from '../parked-filter.ts';
import type { ParkedEvent, Replays } from '../triage.ts';
import { latestFirst, pageOf, type SharedState } from './shared-state.ts';
import { count, writeAudit } from './triage.ts';

export function memoryReplays(shared: SharedState): Replays {
  const { storage } = shared;

  /** Returns the events that a replay operation has selected and not released yet. */
  function selectedBy(id: string): ParkedEvent[] {
    return [...storage.parked.values()].filter(
      (event) => event.operation === id && event.status === 'parked',
    );
  }

  return {
    async begin(request, act) {
      assertFilterNotEmpty(request.filter);
      assertReason(act);
      return shared.write((startedAt) => {
        const id = shared.newId();
        const counts = { selected: 0, released: 0, succeeded: 0, failedAgain: 0 };
        const operation = {
          ...{
            id,
            request,
            act,
            stage: 'selecting' as const,
            version: 1,
            startedAt,
            counts,
            memo: initialReplayState,
          },
          endedAt: undefined,
          stopped: undefined,
        };
        storage.operations.set(id, operation);
        writeAudit(shared, 'replay', [id], act);
        return operation;
      });
    },

    async get(id) {
      return storage.operations.get(id);
    },

    async list(request) {
      const latest = [...storage.operations.values()].toReversed();
      return pageOf(latest, request, ({ id }) => [0, id], latestFirst);
    },

    async move(id, version, { act, ...change }) {
      return shared.write((now) => {
        const operation = storage.operations.get(id);
        if (operation?.version !== version) return undefined;
        const isOver = change.stage === 'done' || change.stage === 'stopped';
        const moved = {
          ...operation,
          ...change,
          version: version + 1,
          endedAt: isOver ? now : operation.endedAt,
        };
        storage.operations.set(id, moved);
        if (act) writeAudit(shared, 'replay_stopped', [id], act);
        return moved;
      });
    },

    async select(id, limit) {
      return shared.write(() => {
        const operation = storage.operations.get(id);
        if (operation?.stage !== 'selecting') return 0;
        const filter = { ...operation.request.filter, status: 'parked' as const };
        const chosen = [...storage.parked.values()]
          .filter((event) => event.operation === undefined && event.parkedAt <= operation.startedAt)
          .filter((event) => matches(filter, event))
          .slice(0, limit);
        for (const event of chosen) storage.parked.set(event.id, { ...event, operation: id });
        count(storage, id, { selected: chosen.length });
        return chosen.length;
      });
    },

    async unselect(id, limit) {
      return shared.write(() => {
        const chosen = selectedBy(id).slice(0, limit);
        for (const event of chosen) storage.parked.set(event.id, { ...event, operation: undefined });
        count(storage, id, { selected: -chosen.length });
        return chosen.length;
      });
    },

    async release(id, limit, publish) {
      const operation = storage.operations.get(id);
      if (!operation) return 0;
      const chosen = selectedBy(id)
        .sort((a, b) => a.parkedAt - b.parkedAt)
        .slice(0, limit);
      for (const [topic, events] of Map.groupBy(chosen, (event) => operation.request.to ?? event.topic)) {
        await publish(
          topic,
          events.map((event) => replayed(event, id)),
        );
      }
      shared.write(() => {
        const unheard = chosen.filter((event) => storage.parked.get(event.id) === event);
        for (const event of unheard) storage.parked.set(event.id, { ...event, status: 'replaying' });
        count(storage, id, { released: unheard.length });
      });
      return chosen.length;
    },
  };
}
