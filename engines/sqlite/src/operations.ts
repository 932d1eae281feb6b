import {
  assertOperation,
  assertOperationChange,
  assertUndoableOperation,
  beginEntry,
  type ChangeRequest,
  coveredBy,
  jsonWithInfinity,
  movedOperation,
  moveEntry,
  newOperation,
  numberIn,
  type Operation,
  type OperationStage,
  type Operations,
  type Place,
  type ReplayState,
  replayed,
} from '@holdfast/contracts';
import { type AuditLog, toAct } from './audit-log.ts';
import type { ParkedCounts } from './parked-counts.ts';
import type { ParkedSearch } from './parked-search.ts';
import { toParked } from './parking-lot.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';

type Row = Record<string, unknown>;
type Changing = Exclude<ChangeRequest['kind'], 'undo'>;

const changedTogether = 200;
/** The position of an operation that has already read all events. */
const atEnd = 'all';

/**
 * Changes the events with these numbers. `keepsTo`: the new removal time, used only by an operation of the
 * kind `keep`.
 */
type Change = (numbers: string, operation: Operation, wall: number, keepsTo: number) => void;

interface Step {
  readonly count: number;
  readonly isOver: boolean;
}

const over: Step = { count: 0, isOver: true };

export function sqliteOperations(
  store: Store,
  audit: AuditLog,
  counts: ParkedCounts,
  search: ParkedSearch,
): Operations {
  // The wall clock may have been set back. So an operation covers events up to the latest stored time of
  // parking.
  const latest = ['parked', 'replaying', 'resolved', 'discarded'].map(
    (status) => `(SELECT max(parked_at) FROM holdfast_parked WHERE status = '${status}')`,
  );
  const add = store.prepare(`
    INSERT INTO holdfast_operation
      (id, kind, request, who, why, undoes, stage, version, started_at, memo, keeps_to, covers_to)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10,
      max(?8, ${latest.map((time) => `coalesce(${time}, ?8)`).join(', ')}))`);
  const find = store.prepare('SELECT * FROM holdfast_operation WHERE id = ?');
  const noteUndone = store.prepare('UPDATE holdfast_operation SET undone_by = ? WHERE id = ?');
  const list = (conditions: string) =>
    store.prepare(`
      SELECT * FROM holdfast_operation WHERE number < ?1 AND (?2 IS NULL OR kind = ?2) ${conditions}
      ORDER BY number DESC LIMIT ?3 + 0`);
  const [listAll, listUnfinished] = [list(''), list('AND ended_at IS NULL')];
  const move = store.prepare(`
    UPDATE holdfast_operation SET version = ?2, request = ?3, stage = ?4, stopped = ?5, memo = ?6, ended_at = ?7
    WHERE id = ?1`);

  const take = store.prepare(
    'UPDATE holdfast_parked SET operation = ? WHERE number IN (SELECT value FROM json_each(?))',
  );
  const noteSelected = store.prepare(
    'UPDATE holdfast_operation SET selected = selected + ?2, position = ?3 WHERE id = ?1',
  );
  const giveBack = store.prepare(`
    UPDATE holdfast_parked SET operation = NULL WHERE number IN (
      SELECT number FROM holdfast_parked WHERE operation = ? AND status = 'parked' LIMIT ? + 0)`);
  const noteGivenBack = store.prepare('UPDATE holdfast_operation SET selected = selected - ? WHERE id = ?');
  const selected = store.prepare(`
    SELECT * FROM holdfast_parked WHERE operation = ? AND status = 'parked' ORDER BY parked_at, id LIMIT ? + 0`);
  const noteReplaying = store.prepare(`
    UPDATE holdfast_parked SET status = 'replaying', replayed_by = ?1, changed_by = NULL
    WHERE operation = ?1 AND status = 'parked' AND number IN (SELECT value FROM json_each(?2))
    RETURNING fingerprint, topic`);
  const noteReleased = store.prepare('UPDATE holdfast_operation SET released = released + ? WHERE id = ?');

  // ?1: the numbers of the events. ?2: the operation. ?3: the new value in `set`.
  const change = (set: string) =>
    store.prepare(`
      UPDATE holdfast_parked SET changed_by = ?2, ${set} WHERE number IN (SELECT value FROM json_each(?1))
      RETURNING fingerprint, topic`);
  const toDiscarded = change(`status = 'discarded', discarded = ?3`);
  const toParkedAgain = change(`status = 'parked', discarded = ?3`);
  const keep = change('removed_before = removed_at, removed_at = ?3');
  const unkeep = change('removed_at = removed_before, removed_before = ?3');

  function discard(numbers: string, { id, act }: Operation, wall: number): void {
    const rows = toDiscarded.all(numbers, id, JSON.stringify({ ...act, at: wall }));
    counts.move(rows, 'parked', 'discarded');
  }

  function restore(numbers: string, { id }: Operation): void {
    counts.move(toParkedAgain.all(numbers, id, null), 'discarded', 'parked');
  }

  const changes: Record<Changing, Change> = {
    discard,
    restore,
    keep: (numbers, { id }, _, keepsTo) => void keep.all(numbers, id, keepsTo),
  };
  const undos: Record<Changing, Change> = {
    discard: restore,
    restore: discard,
    keep: (numbers, { id }) => void unkeep.all(numbers, id, null),
  };
  const changedBy = store.prepare(`
    SELECT number FROM holdfast_parked WHERE changed_by = ? AND number > ? AND operation IS NULL
    ORDER BY number LIMIT ? + 0`);
  const noteChanged = store.prepare(
    'UPDATE holdfast_operation SET changed = changed + ?2, position = ?3 WHERE id = ?1',
  );

  function get(id: string, aheadMs: number): Operation | undefined {
    const row = find.get(id);
    return row && toOperation(row, aheadMs);
  }

  function nextCovered(row: Row, operation: Operation, limit: number): { rows: Row[]; to: string } {
    const filter = coveredBy(operation)!;
    const to = Math.min(filter.to ?? Infinity, Number(row.covers_to ?? row.started_at) + 1);
    const after = row.position === null ? undefined : (JSON.parse(String(row.position)) as Place);
    const step = search.step({ ...filter, to }, after, limit);
    return { rows: step.rows, to: step.to ? JSON.stringify(step.to) : atEnd };
  }

  function nextChanged(row: Row, of: string, limit: number): { rows: Row[]; to: string } {
    const rows = changedBy.all(of, Number(row.position ?? 0), limit);
    return { rows, to: rows.length < limit ? atEnd : String(rows.at(-1)?.number) };
  }

  function selectSome(id: string, limit: number): Step {
    const row = find.get(id);
    if (row?.stage !== 'selecting' || row.position === atEnd) return over;
    const { rows, to } = nextCovered(row, toOperation(row, 0), limit);
    take.run(id, numbersOf(rows));
    noteSelected.run(id, rows.length, to);
    return { count: rows.length, isOver: to === atEnd };
  }

  function changeSome(id: string, limit: number, { wall }: Time): Step {
    const row = find.get(id);
    if (row?.stage !== 'applying' || row.position === atEnd) return over;
    const operation = toOperation(row, 0);
    const { request } = operation;
    const isUndo = request.kind === 'undo';
    const kind = (isUndo ? find.get(request.of)?.kind : request.kind) as Changing;
    const { rows, to } = isUndo ? nextChanged(row, request.of, limit) : nextCovered(row, operation, limit);
    (isUndo ? undos : changes)[kind](numbersOf(rows), operation, wall, Number(row.keeps_to));
    noteChanged.run(id, rows.length, to);
    return { count: rows.length, isOver: to === atEnd };
  }

  /**
   * Repeats `step` until it has changed an event or is over: one step may read many events and change none.
   */
  async function untilFound(step: (time: Time) => Step): Promise<number> {
    for (;;) {
      const { count, isOver } = await store.write((now, wall) => step({ now, wall }));
      if (count > 0 || isOver) return count;
    }
  }

  return {
    async begin(request, act, id) {
      assertOperation(request, act, id);
      return store.write((now, wall) => {
        const stored = id === undefined ? undefined : get(id, wall - now);
        if (stored) return stored;
        audit.assertMayUndo(act);
        if (request.kind === 'undo') {
          const undoneBy = find.get(request.of)?.undone_by as string | null | undefined;
          assertUndoableOperation(request.of, get(request.of, wall - now), undoneBy ?? undefined);
        }
        const operation = newOperation(id ?? store.newId(), request, act, wall);
        const { stage, memo } = operation;
        add.run(
          ...[operation.id, request.kind, jsonWithInfinity(request), act.who, act.why, act.undoes ?? null],
          ...[stage, wall, JSON.stringify(shifted(memo, now - wall))],
          request.kind === 'keep' ? toStoredMs(now + request.keepMs) : null,
        );
        if (request.kind === 'undo') noteUndone.run(operation.id, request.of);
        audit.write(beginEntry(operation), wall);
        return get(operation.id, wall - now)!;
      });
    },

    async get(id) {
      return store.look((now, wall) => get(id, wall - now));
    },

    async list({ kind, unfinished = false }, { limit, cursor }) {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : numberIn(cursor);
      return store.look((now, wall) => {
        const rows = (unfinished ? listUnfinished : listAll).all(before, kind ?? null, limit + 1);
        const shown = rows.slice(0, limit);
        return {
          items: shown.map((row) => toOperation(row, wall - now)),
          cursor: rows.length > limit ? String(shown.at(-1)?.number) : undefined,
        };
      });
    },

    async move(id, version, changed) {
      assertOperationChange(changed);
      return store.write((now, wall) => {
        const operation = get(id, wall - now);
        if (operation?.version !== version) return undefined;
        if (changed.act) audit.assertMayUndo(changed.act);
        const moved = movedOperation(operation, changed, wall);
        move.run(
          ...[id, moved.version, jsonWithInfinity(moved.request), moved.stage, moved.stopped ?? null],
          ...[JSON.stringify(shifted(moved.memo, now - wall)), moved.endedAt ?? null],
        );
        const entry = moveEntry(operation, changed);
        if (entry) audit.write(entry, wall);
        return moved;
      });
    },

    async apply(id, limit) {
      return untilFound((time) => changeSome(id, Math.min(limit, changedTogether), time));
    },

    async select(id, limit) {
      return untilFound(() => selectSome(id, limit));
    },

    async unselect(id, limit) {
      return store.write(() => {
        const count = Number(giveBack.run(id, limit).changes);
        noteGivenBack.run(count, id);
        return count;
      });
    },

    async release(id, limit, publish) {
      const { operation, rows, aheadMs } = store.look((now, wall) => {
        return { operation: get(id, 0), rows: selected.all(id, limit), aheadMs: wall - now };
      });
      if (operation?.request.kind !== 'replay') return 0;
      const { to } = operation.request;
      const events = rows.map((each) => toParked(each, aheadMs));
      for (const [topic, some] of Map.groupBy(events, (event) => to ?? event.topic)) {
        await publish(
          topic,
          some.map((event) => replayed(event, id)),
        );
      }
      await store.write(() => {
        // `noteReplaying` skips events that were already handled. For these events, the release (publication
        // by the replay) was counted together with the result.
        const released = noteReplaying.all(id, numbersOf(rows));
        counts.move(released, 'parked', 'replaying');
        noteReleased.run(released.length, id);
      });
      return rows.length;
    },
  };
}

function numbersOf(rows: readonly Row[]): string {
  return JSON.stringify(rows.map(({ number }) => number));
}

/**
 * Moves the times in `memo` by `byMs`. Callers see wall time; the file has the store's time, which cannot
 * jump.
 */
function shifted(memo: ReplayState, byMs: number): ReplayState {
  return { ...memo, paidUntil: memo.paidUntil + byMs, canarySince: memo.canarySince + byMs };
}

/** `aheadMs`: how far the wall clock is ahead of the store's clock. */
function toOperation(row: Row, aheadMs: number): Operation {
  return {
    id: String(row.id),
    request: JSON.parse(String(row.request)),
    act: toAct(row),
    stage: row.stage as OperationStage,
    version: Number(row.version),
    startedAt: Number(row.started_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    stopped: (row.stopped as string | null) ?? undefined,
    counts: {
      selected: Number(row.selected),
      released: Number(row.released),
      succeeded: Number(row.succeeded),
      failedAgain: Number(row.failed_again),
      changed: Number(row.changed),
    },
    memo: shifted(JSON.parse(String(row.memo)), aheadMs),
  };
}
