import {
  assertOperation,
  assertOperationChange,
  assertUndoableOperation,
  beginEntry,
  clampMs,
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
  replayed,
} from '@holdfast/contracts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { numberOf, textOf } from './envelope-columns.ts';
import { parkedColumns, parkedOf } from './parked-event.ts';
import { addPlace, type ParkedQuery, parkedQuery } from './parked-query.ts';
import type { TriageParts } from './triage.ts';

const columns = `id, request::text, who, why, undoes, stage, version, started_at, ended_at, stopped, selected, released, succeeded,
  failed_again, changed, memo::text, position_at, position_id`;
const getText = `SELECT ${columns} FROM {schema}.operation WHERE id = $1`;
const lockText = `${getText} FOR UPDATE`;
const undoOfText = 'SELECT id FROM {schema}.operation WHERE undo_of = $1';
const beginText = `INSERT INTO {schema}.operation (id, kind, undo_of, request, who, why, undoes, stage, started_at, memo)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING RETURNING ${columns}`;
const moveText = `UPDATE {schema}.operation SET version = $2, stage = $3, stopped = $4, memo = $5, request = $6, ended_at = $7
  WHERE id = $1 RETURNING ${columns}`;
const movedOnText = `UPDATE {schema}.operation SET position_at = $2, position_id = $3, changed = changed + $4,
  selected = selected + $5 WHERE id = $1`;
const selectText = `UPDATE {schema}.parked SET operation = $2
  WHERE id = ANY ($1) AND status = 'parked' AND operation IS NULL RETURNING 1`;
const undoneText = `SELECT id FROM {schema}.parked WHERE changed_by = $1 AND operation IS NULL
  ORDER BY parked_at, id LIMIT $2 FOR UPDATE`;
const unselectText = `WITH back AS (
    UPDATE {schema}.parked SET operation = NULL WHERE id = ANY (ARRAY(
      SELECT id FROM {schema}.parked WHERE operation = $1 AND status = 'parked' ORDER BY id LIMIT $2 FOR UPDATE)) RETURNING 1
  ), counted AS (SELECT count(*)::int AS n FROM back)
  UPDATE {schema}.operation SET selected = selected - n FROM counted WHERE id = $1 RETURNING n`;
const selectedText = `SELECT ${parkedColumns} FROM {schema}.parked WHERE operation = $1 AND status = 'parked'
  ORDER BY parked_at, id LIMIT $2`;
const releasedText = `WITH released AS (
    UPDATE {schema}.parked SET status = 'replaying', replayed_by = $1, changed_by = NULL, removed_at_before = NULL
    WHERE id = ANY ($2) AND operation = $1 AND status = 'parked' RETURNING 1
  ) UPDATE {schema}.operation SET released = released + (SELECT count(*) FROM released) WHERE id = $1`;

/** The position of an operation that has read all events. */
const lastPlace: Place = [Number.MAX_SAFE_INTEGER, ''];

/** Stores operations. Each method is one transaction, except `release`, which also publishes. */
export function postgresOperations({ database, writeAudit, newId }: TriageParts): Operations {
  async function lock(tx: PostgresTransaction, id: string): Promise<Stored | undefined> {
    const [row] = await database.rowsWithin(tx, lockText, [id]);
    return row && storedOf(row);
  }

  return {
    async begin(request, act, id = newId()) {
      assertOperation(request, act, id);
      return database.transaction(async (tx) => {
        const [known] = await database.rowsWithin(tx, getText, [id]);
        if (known) return storedOf(known).operation;
        if (request.kind === 'undo') {
          const undone = await lock(tx, request.of);
          const [undo] = await database.rowsWithin(tx, undoOfText, [request.of]);
          assertUndoableOperation(request.of, undone?.operation, undo?.[0] as string | undefined);
        }
        const operation = newOperation(id, request, act, await nowMs(database, tx));
        const [row] = await database.rowsWithin(tx, beginText, [
          ...[id, request.kind, request.kind === 'undo' ? request.of : null, jsonWithInfinity(request)],
          ...[act.who, act.why, act.undoes ?? null, operation.stage, operation.startedAt],
          JSON.stringify(operation.memo),
        ]);
        if (row) {
          await writeAudit(tx, beginEntry(operation));
          return storedOf(row).operation;
        }
        const [stored] = await database.rowsWithin(tx, getText, [id]);
        return storedOf(stored!).operation;
      });
    },

    async get(id) {
      const [row] = await database.rows(getText, [id]);
      return row && storedOf(row).operation;
    },

    async list({ kind, unfinished = false }, { limit, cursor }) {
      const rows = await database.rows(
        `SELECT ${columns}, number FROM {schema}.operation
         WHERE ($1::bigint IS NULL OR number < $1) AND ($2::text IS NULL OR kind = $2) AND (NOT $3 OR ended_at IS NULL)
         ORDER BY number DESC LIMIT $4`,
        [cursor === undefined ? null : numberIn(cursor), kind ?? null, unfinished, limit + 1],
      );
      const shown = rows.slice(0, limit);
      return {
        items: shown.map((row) => storedOf(row).operation),
        cursor: rows.length > limit ? String(shown.at(-1)?.at(-1)) : undefined,
      };
    },

    async move(id, version, change) {
      assertOperationChange(change);
      return database.transaction(async (tx) => {
        const stored = await lock(tx, id);
        if (stored?.operation.version !== version) return undefined;
        const entry = moveEntry(stored.operation, change);
        if (entry) await writeAudit(tx, entry);
        const moved = movedOperation(stored.operation, change, await nowMs(database, tx));
        const [row] = await database.rowsWithin(tx, moveText, [
          ...[id, moved.version, moved.stage, moved.stopped ?? null, JSON.stringify(moved.memo)],
          ...[jsonWithInfinity(moved.request), moved.endedAt ?? null],
        ]);
        return storedOf(row!).operation;
      });
    },

    async apply(id, limit) {
      return database.transaction(async (tx) => {
        const stored = await lock(tx, id);
        if (stored?.operation.stage !== 'applying') return 0;
        return stored.operation.request.kind === 'undo'
          ? undo(database, tx, stored.operation, stored.operation.request.of, limit)
          : walk(database, tx, stored, limit, 'changed', (ids) =>
              change(database, tx, stored.operation, ids),
            );
      });
    },

    async select(id, limit) {
      return database.transaction(async (tx) => {
        const stored = await lock(tx, id);
        if (stored?.operation.stage !== 'selecting') return 0;
        return walk(database, tx, stored, limit, 'selected', async (ids) => {
          return (await database.rowsWithin(tx, selectText, [ids, id])).length;
        });
      });
    },

    async unselect(id, limit) {
      const [row] = await database.rows(unselectText, [id, limit]);
      return (row?.[0] as number | undefined) ?? 0;
    },

    async release(id, limit, publish) {
      const [row] = await database.rows(getText, [id]);
      const request = row && storedOf(row).operation.request;
      if (request?.kind !== 'replay') return 0;
      const chosen = (await database.rows(selectedText, [id, limit])).map(parkedOf);
      for (const [topic, events] of Map.groupBy(chosen, (event) => request.to ?? event.topic)) {
        await publish(
          topic,
          events.map((event) => replayed(event, id)),
        );
      }
      // This skips events that were already handled: their release was counted with their result.
      await database.rows(releasedText, [id, chosen.map((event) => event.id)]);
      return chosen.length;
    },
  };
}

/**
 * Changes the next events, and moves the position of the operation. Events that another transaction has just
 * changed are skipped.
 */
async function walk(
  database: Database,
  tx: PostgresTransaction,
  { operation, position }: Stored,
  limit: number,
  counter: 'changed' | 'selected',
  changeAll: (ids: readonly string[]) => Promise<number>,
): Promise<number> {
  let from = position;
  for (;;) {
    const query = coveredQuery(operation, from);
    const text = query.first('parked_at, id', 'ASC', query.parameter(limit));
    const found = (await database.searchWithin(tx, text, query.values)) as [number, string][];
    const ids = found.map(([, id]) => id);
    const changed = ids.length === 0 ? 0 : await changeAll(ids);
    from = found.length < limit ? lastPlace : found.at(-1)!;
    if (changed === 0 && found.length > 0) continue;
    const counts = counter === 'changed' ? [changed, 0] : [0, changed];
    await database.rowsWithin(tx, movedOnText, [operation.id, ...from, ...counts]);
    return changed;
  }
}

function coveredQuery(operation: Operation, from: Place | undefined): ParkedQuery {
  const query = parkedQuery(coveredBy(operation)!);
  query.and('parked_at <= ?', operation.startedAt);
  if (from) addPlace(query, '>', from);
  return query;
}

async function change(
  database: Database,
  tx: PostgresTransaction,
  operation: Operation,
  ids: readonly string[],
): Promise<number> {
  const query = coveredQuery(operation, undefined);
  query.and('id = ANY (?)', ids);
  const locked = `SELECT id FROM {schema}.parked WHERE ${query.where} ORDER BY id FOR UPDATE`;
  const free = (await database.searchWithin(tx, locked, query.values)).map(([id]) => id as string);
  const { request } = operation;
  switch (request.kind) {
    case 'discard':
      return discard(database, tx, operation, free);
    case 'restore':
      return restore(database, tx, operation, free);
    default: {
      const keepMs = request.kind === 'keep' ? clampMs(request.keepMs) : 0;
      return set(
        database,
        tx,
        operation,
        free,
        'removed_at = $3::bigint + ceil($4::double precision)::bigint',
        [operation.startedAt, keepMs],
      );
    }
  }
}

/** Undoes the operation `of`. An event that another operation changed later stays unchanged. */
async function undo(
  database: Database,
  tx: PostgresTransaction,
  operation: Operation,
  of: string,
  limit: number,
): Promise<number> {
  const [row] = await database.rowsWithin(tx, getText, [of]);
  const kind = row && storedOf(row).operation.request.kind;
  const ids = (await database.rowsWithin(tx, undoneText, [of, limit])).map(([id]) => id as string);
  if (ids.length === 0) return 0;
  const undone =
    kind === 'discard'
      ? await restore(database, tx, operation, ids)
      : kind === 'restore'
        ? await discard(database, tx, operation, ids)
        : await set(database, tx, operation, ids, 'removed_at = coalesce(removed_at_before, removed_at)', []);
  await database.rowsWithin(tx, movedOnText, [operation.id, ...lastPlace, undone, 0]);
  return undone;
}

async function discard(
  database: Database,
  tx: PostgresTransaction,
  operation: Operation,
  ids: readonly string[],
): Promise<number> {
  const note = JSON.stringify({ ...operation.act, at: await nowMs(database, tx) });
  return set(database, tx, operation, ids, `status = 'discarded', discarded = $3`, [note]);
}

function restore(
  database: Database,
  tx: PostgresTransaction,
  operation: Operation,
  ids: readonly string[],
): Promise<number> {
  return set(database, tx, operation, ids, `status = 'parked', discarded = NULL`, []);
}

async function set(
  database: Database,
  tx: PostgresTransaction,
  { id }: Operation,
  ids: readonly string[],
  changes: string,
  values: readonly unknown[],
): Promise<number> {
  const text = `UPDATE {schema}.parked SET changed_by = $2, removed_at_before = removed_at, ${changes}
    WHERE id = ANY ($1) RETURNING 1`;
  return (await database.rowsWithin(tx, text, [ids, id, ...values])).length;
}

async function nowMs(database: Database, tx: PostgresTransaction): Promise<number> {
  const [[now]] = (await database.rowsWithin(tx, 'SELECT {schema}.now_ms()')) as [[number]];
  return now;
}

interface Stored {
  readonly operation: Operation;
  readonly position: Place | undefined;
}

function storedOf(row: Row): Stored {
  const [id, request, who, why, undoes, stage, version, startedAt, endedAt, stopped, ...rest] = row;
  const [selected, released, succeeded, failedAgain, changed, memo, positionAt, positionId] = rest;
  const operation = {
    id: id as string,
    request: JSON.parse(request as string),
    act: { who: who as string, why: why as string, ...(undoes !== null && { undoes: undoes as string }) },
    stage: stage as OperationStage,
    version: version as number,
    startedAt: startedAt as number,
    endedAt: numberOf(endedAt),
    stopped: textOf(stopped),
    counts: {
      selected: selected as number,
      released: released as number,
      succeeded: succeeded as number,
      failedAgain: failedAgain as number,
      changed: changed as number,
    },
    memo: JSON.parse(memo as string),
  };
  const position = positionAt === null ? undefined : ([positionAt as number, positionId as string] as const);
  return { operation, position };
}
