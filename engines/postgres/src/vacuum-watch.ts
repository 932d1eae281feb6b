import type { Database } from './database.ts';

/** A problem that an operator should know about, although everything still works. */
export interface PostgresWarning {
  readonly code: 'vacuum_held_back';
  readonly message: string;
  /** The id of the server process; `undefined`: a prepared transaction. */
  readonly pid: number | undefined;
  readonly forMs: number;
}

const heldText = `SELECT pid, who, for_ms FROM (
    SELECT pid, format('%s (%s, %s)', coalesce(nullif(application_name, ''), 'a connection'), usename, state) AS who,
      (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint AS for_ms, backend_xmin
    FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
      AND backend_type = 'client backend'
    UNION ALL
    SELECT NULL, format('the prepared transaction %s', gid), (extract(epoch FROM clock_timestamp() - prepared) * 1000)::bigint, transaction
    FROM pg_prepared_xacts WHERE database = current_database()
  ) AS holders WHERE for_ms >= $1 ORDER BY for_ms DESC LIMIT 1`;

/**
 * Returns a function that warns once of each transaction older than `longMs`. An open transaction stops
 * vacuum, and the queue becomes slow.
 */
export function vacuumWatch(
  database: Database,
  longMs: number,
  warn: (warning: PostgresWarning) => void,
): () => Promise<void> {
  let warned: string | undefined;
  return async () => {
    const [row] = await database.rows(heldText, [longMs]);
    if (!row) {
      warned = undefined;
      return;
    }
    const [pid, who, forMs] = row as [number | null, string, number];
    if (warned === who + pid) return;
    warned = who + pid;
    const where = pid === null ? who : `${who}, process ${pid},`;
    const message = `${where} has had a transaction open for ${Math.round(forMs / 1000)} s: vacuum cannot remove settled events, and claims get slower`;
    warn({ code: 'vacuum_held_back', message, pid: pid ?? undefined, forMs });
  };
}
