import {
  type Act,
  type ActiveControl,
  assertControl,
  assertReason,
  type Control,
  type Controls,
  clampMs,
  controlId,
} from '@holdfast/contracts';
import type { Database, Row } from './database.ts';
import { numberOf } from './envelope-columns.ts';

const columns = 'id, control::text, who, why, since, until';
const imposeText = `WITH changed AS (UPDATE {schema}.control_sheet SET version = version + 1),
  freed AS (UPDATE {schema}.topic SET releasing = true WHERE name = $2)
  INSERT INTO {schema}.control (id, topic, control, kind, tenant, key, who, why, since, until)
  SELECT $1, $2, $3::json, $4, $5, $6, $7, $8, now, now + ceil($9::double precision)::bigint FROM {schema}.now_ms() AS n(now)
  ON CONFLICT (id) DO UPDATE SET control = excluded.control, who = excluded.who, why = excluded.why, since = excluded.since,
    until = excluded.until
  RETURNING ${columns}`;
const liftText = `WITH gone AS (DELETE FROM {schema}.control WHERE id = $1 RETURNING topic),
  freed AS (UPDATE {schema}.topic SET releasing = true FROM gone WHERE name = gone.topic)
  UPDATE {schema}.control_sheet SET version = version + 1 WHERE EXISTS (SELECT FROM gone) RETURNING (SELECT topic FROM gone)`;

/**
 * Stores controls: pauses and quarantines that an operator has set. After a change it calls `wake`, because events of
 * the topic may now be due.
 */
export function postgresControls(database: Database, wake: (topic: string) => void): Controls {
  return {
    async impose(control, act, forMs) {
      assertControl(control, act, forMs);
      const { tenant = null, key = null } = control as { tenant?: string; key?: string };
      const [row] = await database.rows(imposeText, [
        ...[controlId(control), control.topic, JSON.stringify(control), control.kind, tenant, key],
        ...[act.who, act.why, forMs === undefined ? null : clampMs(forMs)],
      ]);
      wake(control.topic);
      return activeControlOf(row!);
    },

    async lift(id, act) {
      assertReason(act);
      await endControls(database);
      const [row] = await database.rows(liftText, [id]);
      if (row) wake(row[0] as string);
      return row !== undefined;
    },

    async active() {
      await endControls(database);
      const rows = await database.rows(
        `SELECT version, ${columns} FROM {schema}.control_sheet LEFT JOIN {schema}.control ON true ORDER BY since, id`,
      );
      const controls = rows.filter((row) => row[1] !== null).map((row) => activeControlOf(row.slice(1)));
      return { version: rows[0]![0] as number, controls };
    },
  };
}

async function endControls(database: Database): Promise<void> {
  await database.rows('SELECT {schema}.end_controls({schema}.now_ms())');
}

function activeControlOf([id, control, who, why, since, until]: Row): ActiveControl {
  const act: Act = { who: who as string, why: why as string };
  return {
    id: id as string,
    control: JSON.parse(control as string) as Control,
    act,
    since: since as number,
    until: numberOf(until),
  };
}
