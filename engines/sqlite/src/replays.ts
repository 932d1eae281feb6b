import {
  type Act,
  assertFilterNotEmpty,
  assertReason,
  initialReplayState,
  jsonWithInfinity,
  numberIn,
  type ParkedFilter,
  type ReplayOperation,
  type ReplayRequest,
  type ReplayStage,
  type ReplayState,
  type Replays,
  replayed,
} from '@holdfast/contracts';
import type { ParkedSearch, Place } from './parked-search.ts';
import { type ParkingLot, toParked } from './parking-lot.ts';
import type { Store } from './store.ts';

/** Stores replay operations, each of which publishes a selection of parked events again. */
export function sqliteReplays(store: Store, lot: ParkingLot, search: ParkedSearch): Replays {
  const add = store.prepare(`
    INSERT INTO holdfast_operation (id, request, who, why, stage, version, started_at, memo, selects_to)
    VALUES (?1, ?2, ?3, ?4, 'selecting', 1, ?5, ?6,
      max(?5, coalesce((
        SELECT parked_at FROM holdfast_parked WHERE status = 'parked' ORDER BY parked_at DESC LIMIT 1), ?5)))`);
  const find = store.prepare('SELECT * FROM holdfast_operation WHERE id = ?');
  const list = store.prepare(
    'SELECT * FROM holdfast_operation WHERE number < ? ORDER BY number DESC LIMIT ? + 0',
  );
  const move = store.prepare(`
    UPDATE holdfast_operation SET version = version + 1, stage = coalesce(?3, stage), stopped = coalesce(?4, stopped),
      memo = coalesce(?5, memo), ended_at = coalesce(?6, ended_at) WHERE id = ?1 AND version = ?2 RETURNING *`);
  const take = store.prepare(
    'UPDATE holdfast_parked SET operation = ? WHERE number IN (SELECT value FROM json_each(?))',
  );
  const noteSelected = store.prepare(
    'UPDATE holdfast_operation SET selected = selected + ?2, selected_to = ?3 WHERE id = ?1',
  );
  const giveBack = store.prepare(`
    UPDATE holdfast_parked SET operation = NULL WHERE number IN (
      SELECT number FROM holdfast_parked WHERE operation = ? AND status = 'parked' LIMIT ? + 0)`);
  const noteGivenBack = store.prepare('UPDATE holdfast_operation SET selected = selected - ? WHERE id = ?');
  const selected = store.prepare(`
    SELECT * FROM holdfast_parked WHERE operation = ? AND status = 'parked' ORDER BY parked_at, number LIMIT ? + 0`);
  const noteReplaying = store.prepare(`
    UPDATE holdfast_parked SET status = 'replaying'
    WHERE operation = ?1 AND status = 'parked' AND number IN (SELECT value FROM json_each(?2))`);
  const noteReleased = store.prepare('UPDATE holdfast_operation SET released = released + ? WHERE id = ?');

  function get(id: string, aheadMs: number): ReplayOperation | undefined {
    const row = find.get(id);
    return row && toOperation(row, aheadMs);
  }

  /**
   * Assigns up to `limit` more parked events to the replay, in one step of its search. Call it within a transaction.
   */
  function selectSome(id: string, limit: number): { count: number; isOver: boolean } {
    const row = find.get(id);
    if (row?.stage !== 'selecting' || row.selected_to === 'all') return { count: 0, isOver: true };
    const { filter: asked } = readRequest(row);
    // If the wall clock was set back, an event that was parked before the replay began may have a later time of day. So
    // the upper limit is the latest parking time that was stored when the replay began, and not the time at which the
    // replay began.
    const to = Math.min(asked.to ?? Infinity, Number(row.selects_to ?? row.started_at) + 1);
    const filter: ParkedFilter = { ...asked, status: 'parked', isFree: true, to };
    const after = row.selected_to === null ? undefined : (JSON.parse(String(row.selected_to)) as Place);
    const step = search.step(filter, after, limit);
    take.run(id, JSON.stringify(step.rows.map(({ number }) => number)));
    noteSelected.run(id, step.rows.length, step.to ? JSON.stringify(step.to) : 'all');
    return { count: step.rows.length, isOver: step.to === undefined };
  }

  return {
    async begin(request, act) {
      assertFilterNotEmpty(request.filter);
      assertReason(act);
      return store.write((now, wall) => {
        const id = store.newId();
        const memo = shifted(initialReplayState, now - wall);
        add.run(id, jsonWithInfinity(request), act.who, act.why, wall, JSON.stringify(memo));
        lot.audit('replay', [id], act, wall);
        return get(id, wall - now)!;
      });
    },

    async get(id) {
      return store.look((now, wall) => get(id, wall - now));
    },

    async list({ limit, cursor }) {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : numberIn(cursor);
      return store.look((now, wall) => {
        const rows = list.all(before, limit + 1);
        const shown = rows.slice(0, limit);
        return {
          items: shown.map((row) => toOperation(row, wall - now)),
          cursor: rows.length > limit ? String(shown.at(-1)?.number) : undefined,
        };
      });
    },

    async move(id, version, { stage, stopped, memo, act }) {
      return store.write((now, wall) => {
        const endedAt = stage === 'done' || stage === 'stopped' ? wall : null;
        const memoText = memo === undefined ? null : JSON.stringify(shifted(memo, now - wall));
        const row = move.get(id, version, stage ?? null, stopped ?? null, memoText, endedAt);
        if (row && act) lot.audit('replay_stopped', [id], act, wall);
        return row && toOperation(row, wall - now);
      });
    },

    async select(id, limit) {
      for (;;) {
        const { count, isOver } = await store.write(() => selectSome(id, limit));
        if (count > 0 || isOver) return count;
      }
    },

    async unselect(id, limit) {
      return store.write(() => {
        const count = Number(giveBack.run(id, limit).changes);
        noteGivenBack.run(count, id);
        return count;
      });
    },

    async release(id, limit, publish) {
      const row = store.look(() => find.get(id));
      if (!row) return 0;
      const { to } = readRequest(row);
      const rows = store.look(() => selected.all(id, limit));
      const { now, wall } = store.time();
      const events = rows.map((each) => toParked(each, wall - now));
      for (const [topic, some] of Map.groupBy(events, (event) => to ?? event.topic)) {
        await publish(
          topic,
          some.map((event) => replayed(event, id)),
        );
      }
      await store.write(() => {
        // Some of the events may have succeeded or failed since `publish`. Those are already counted as released.
        const { changes } = noteReplaying.run(id, JSON.stringify(rows.map(({ number }) => number)));
        noteReleased.run(Number(changes), id);
      });
      return rows.length;
    },
  };
}

function readRequest({ request }: Record<string, unknown>): ReplayRequest {
  return JSON.parse(String(request));
}

/**
 * Shifts `paidUntil` and `canarySince` between wall time, which callers see, and store time, which is stored because it
 * cannot jump.
 */
function shifted(memo: ReplayState, byMs: number): ReplayState {
  return { ...memo, paidUntil: memo.paidUntil + byMs, canarySince: memo.canarySince + byMs };
}

function toOperation(row: Record<string, unknown>, aheadMs: number): ReplayOperation {
  return {
    id: String(row.id),
    request: readRequest(row),
    act: { who: String(row.who), why: String(row.why) } as Act,
    stage: row.stage as ReplayStage,
    version: Number(row.version),
    startedAt: Number(row.started_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    stopped: (row.stopped as string | null) ?? undefined,
    counts: {
      selected: Number(row.selected),
      released: Number(row.released),
      succeeded: Number(row.succeeded),
      failedAgain: Number(row.failed_again),
    },
    memo: shifted(JSON.parse(String(row.memo)), aheadMs),
  };
}
