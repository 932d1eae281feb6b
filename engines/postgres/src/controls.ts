import {
  type Act,
  type ActiveControl,
  assertControl,
  assertReason,
  type Control,
  type Controls,
  clampMs,
  controlId,
  controlSubjects,
  topicOf,
} from '@holdfast/contracts';
import type { WriteAudit } from './audit.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { numberOf, textOf } from './envelope-columns.ts';

const columns = 'id, control::text, who, why, undoes, since, until, version';
/** This also locks the row, so that only one transaction at a time changes controls. */
const nextVersionText = 'UPDATE {schema}.control_sheet SET version = version + 1 RETURNING version';
const controlText = `SELECT ${columns} FROM {schema}.control WHERE id = $1`;
const imposeText = `WITH freed AS (UPDATE {schema}.topic SET releasing = true WHERE name = $2)
  INSERT INTO {schema}.control (id, topic, control, kind, tenant, key, who, why, undoes, version, since, until)
  SELECT $1, $2, $3::json, $4, $5, $6, $7, $8, $9, $10, now, now + ceil($11::double precision)::bigint
  FROM {schema}.now_ms() AS n(now)
  ON CONFLICT (id) DO UPDATE SET control = excluded.control, who = excluded.who, why = excluded.why, undoes = excluded.undoes,
    version = excluded.version, since = excluded.since, until = excluded.until
  RETURNING ${columns}`;
const liftText = `WITH gone AS (DELETE FROM {schema}.control WHERE id = $1 RETURNING topic)
  UPDATE {schema}.topic SET releasing = true FROM gone WHERE name = gone.topic`;
const endText = 'SELECT {schema}.end_controls({schema}.now_ms())';
const activeText = `SELECT s.version, {schema}.now_ms(), c.* FROM {schema}.control_sheet s
  LEFT JOIN (SELECT ${columns} FROM {schema}.control) AS c ON true ORDER BY since, id`;

/**
 * Stores operators' controls, such as pause and quarantine. Calls `wake` after a change, because events may
 * be due now.
 */
export function postgresControls(
  database: Database,
  writeAudit: WriteAudit,
  wake: (topic: string) => void,
): Controls {
  async function read(tx: PostgresTransaction, id: string): Promise<ActiveControl | undefined> {
    const [row] = await database.rowsWithin(tx, controlText, [id]);
    return row && activeControlOf(row);
  }

  return {
    async impose(control, act, forMs) {
      assertControl(control, act, forMs);
      const id = controlId(control);
      const topic = topicOf(control);
      const { tenant = null, key = null } = control as { tenant?: string; key?: string };
      const imposed = await database.transaction(async (tx) => {
        await database.rowsWithin(tx, endText);
        const [[version]] = (await database.rowsWithin(tx, nextVersionText)) as [[number]];
        const before = await read(tx, id);
        const subjects = controlSubjects(control);
        await writeAudit(tx, { ...act, what: 'control_set', subjects, before });
        const [row] = await database.rowsWithin(tx, imposeText, [
          ...[id, topic ?? null, JSON.stringify(control), kindOf(control), tenant, key],
          ...[act.who, act.why, act.undoes ?? null, version, forMs === undefined ? null : clampMs(forMs)],
        ]);
        return activeControlOf(row!);
      });
      if (topic !== undefined) wake(topic);
      return imposed;
    },

    async lift(id, act) {
      assertReason(act);
      const lifted = await database.transaction(async (tx) => {
        await database.rowsWithin(tx, endText);
        if (!(await read(tx, id))) return undefined;
        await database.rowsWithin(tx, nextVersionText);
        // Another transaction may have changed the control before this one got the lock.
        const before = await read(tx, id);
        if (!before) return undefined;
        const subjects = controlSubjects(before.control);
        await writeAudit(tx, { ...act, what: 'control_removed', subjects, before });
        await database.rowsWithin(tx, liftText, [id]);
        return before;
      });
      const topic = lifted && topicOf(lifted.control);
      if (topic !== undefined) wake(topic);
      return lifted !== undefined;
    },

    async active() {
      await database.rows(endText);
      const rows = await database.rows(activeText);
      const controls = rows.filter((row) => row[2] !== null).map((row) => activeControlOf(row.slice(2)));
      return { version: rows[0]![0] as number, now: rows[0]![1] as number, controls };
    },
  };
}

function kindOf(control: Control): string {
  return control.kind === 'pause' && 'only' in control && control.only === 'retries'
    ? 'pause_retries'
    : control.kind;
}

function activeControlOf([id, control, who, why, undoes, since, until, version]: Row): ActiveControl {
  const undone = textOf(undoes);
  const act: Act = {
    who: who as string,
    why: why as string,
    ...(undone !== undefined && { undoes: undone }),
  };
  return {
    id: id as string,
    control: JSON.parse(control as string) as Control,
    act,
    since: since as number,
    until: numberOf(until),
    version: version as number,
  };
}
