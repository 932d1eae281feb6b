import {
  assertFilterNotEmpty,
  assertReason,
  initialReplayState,
  jsonWithInfinity,
  numberIn,
  type ReplayOperation,
  type ReplayStage,
  type Replays,
  replayed,
} from '@holdfast/contracts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { numberOf, textOf } from './envelope-columns.ts';
import { parkedColumns, parkedOf } from './parked-event.ts';
import { parkedQuery } from './parked-query.ts';
import type { TriageParts } from './triage.ts';

const columns = `id, request::text, who, why, stage, version, started_at, ended_at, stopped, selected, released, succeeded,
  failed_again, memo::text`;
const getText = `SELECT ${columns} FROM {schema}.replay WHERE id = $1`;
const beginText = `INSERT INTO {schema}.replay (id, request, who, why, stage, started_at, memo)
  VALUES ($1, $2, $3, $4, 'selecting', {schema}.now_ms(), $5) RETURNING ${columns}`;
const moveText = `UPDATE {schema}.replay SET version = version + 1, stage = coalesce($3, stage), stopped = coalesce($4, stopped),
  memo = coalesce($5::json, memo), ended_at = CASE WHEN $3 IN ('done', 'stopped') THEN {schema}.now_ms() ELSE ended_at END
  WHERE id = $1 AND version = $2 RETURNING ${columns}`;
const unselectText = `WITH back AS (
    UPDATE {schema}.parked SET operation = NULL WHERE id = ANY (ARRAY(
      SELECT id FROM {schema}.parked WHERE operation = $1 AND status = 'parked' ORDER BY id LIMIT $2 FOR UPDATE)) RETURNING 1
  ), counted AS (SELECT count(*)::int AS n FROM back)
  UPDATE {schema}.replay SET selected = selected - n FROM counted WHERE id = $1 RETURNING n`;
const selectedText = `SELECT ${parkedColumns} FROM {schema}.parked WHERE operation = $1 AND status = 'parked'
  ORDER BY parked_at, id LIMIT $2`;
const releasedText = `WITH released AS (
    UPDATE {schema}.parked SET status = 'replaying' WHERE id = ANY ($2) AND operation = $1 AND status = 'parked' RETURNING 1
  ) UPDATE {schema}.replay SET released = released + (SELECT count(*) FROM released) WHERE id = $1`;

/**
 * Stores replay operations, each of which publishes a selection of parked events again. Each method is one statement or
 * one transaction, except `release`, which also publishes.
 */
export function postgresReplays({ database, writeAudit, newId }: TriageParts): Replays {
  return {
    async begin(request, act) {
      assertFilterNotEmpty(request.filter);
      assertReason(act);
      return database.transaction(async (tx) => {
        const id = newId();
        const values = [id, jsonWithInfinity(request), act.who, act.why, JSON.stringify(initialReplayState)];
        const [row] = await database.rowsWithin(tx, beginText, values);
        await writeAudit(tx, 'replay', [id], act);
        return operationOf(row!);
      });
    },

    async get(id) {
      const [row] = await database.rows(getText, [id]);
      return row && operationOf(row);
    },

    async list({ limit, cursor }) {
      const rows = await database.rows(
        `SELECT ${columns}, number FROM {schema}.replay WHERE number < coalesce($1::bigint, number + 1)
         ORDER BY number DESC LIMIT $2`,
        [cursor === undefined ? null : numberIn(cursor), limit + 1],
      );
      const shown = rows.slice(0, limit);
      return {
        items: shown.map(operationOf),
        cursor: rows.length > limit ? String(shown.at(-1)?.at(-1)) : undefined,
      };
    },

    async move(id, version, { stage, stopped, memo, act }) {
      return database.transaction(async (tx) => {
        const values = [id, version, stage ?? null, stopped ?? null, memo ? JSON.stringify(memo) : null];
        const [row] = await database.rowsWithin(tx, moveText, values);
        if (!row) return undefined;
        if (act) await writeAudit(tx, 'replay_stopped', [id], act);
        return operationOf(row);
      });
    },

    async select(id, limit) {
      return database.transaction(async (tx) => {
        const [row] = await database.rowsWithin(tx, `${getText} FOR UPDATE`, [id]);
        const operation = row && operationOf(row);
        return operation?.stage === 'selecting' ? select(database, tx, operation, limit) : 0;
      });
    },

    async unselect(id, limit) {
      const [row] = await database.rows(unselectText, [id, limit]);
      return (row?.[0] as number | undefined) ?? 0;
    },

    async release(id, limit, publish) {
      const [row] = await database.rows(getText, [id]);
      if (!row) return 0;
      const { to } = operationOf(row).request;
      const chosen = (await database.rows(selectedText, [id, limit])).map(parkedOf);
      for (const [topic, events] of Map.groupBy(chosen, (event) => to ?? event.topic)) {
        await publish(
          topic,
          events.map((event) => replayed(event, id)),
        );
      }
      // Some of the events may have succeeded or failed since `publish`. Those are already counted as released.
      await database.rows(releasedText, [id, chosen.map((event) => event.id)]);
      return chosen.length;
    },
  };
}

async function select(
  database: Database,
  tx: PostgresTransaction,
  { id, request, startedAt }: ReplayOperation,
  limit: number,
): Promise<number> {
  const { where, values, next } = parkedQuery({ ...request.filter, status: 'parked', isFree: true });
  const text = `WITH chosen AS (
      UPDATE {schema}.parked SET operation = $${next} WHERE id = ANY (ARRAY(
        SELECT id FROM {schema}.parked WHERE ${where} AND parked_at <= $${next + 1}
        ORDER BY parked_at, id LIMIT $${next + 2} FOR UPDATE)) RETURNING 1
    ), counted AS (SELECT count(*)::int AS n FROM chosen)
    UPDATE {schema}.replay SET selected = selected + n FROM counted WHERE id = $${next} RETURNING n`;
  const [row] = await database.rowsWithin(tx, text, [...values, id, startedAt, limit]);
  return row![0] as number;
}

function operationOf(row: Row): ReplayOperation {
  const [id, request, who, why, stage, version, startedAt, endedAt, stopped, ...counts] = row;
  const [selected, released, succeeded, failedAgain, memo] = counts;
  return {
    id: id as string,
    request: JSON.parse(request as string),
    act: { who: who as string, why: why as string },
    stage: stage as ReplayStage,
    version: version as number,
    startedAt: startedAt as number,
    endedAt: numberOf(endedAt),
    stopped: textOf(stopped),
    counts: {
      selected: selected as number,
      released: released as number,
      succeeded: succeeded as number,
      failedAgain: failedAgain as number,
    },
    memo: JSON.parse(memo as string),
  };
}
