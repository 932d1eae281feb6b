import type { Pack } from '../decide/outcome.ts';
import { definePack } from './pack.ts';

// The patterns below match SQLSTATE codes, error numbers of MySQL, MariaDB and SQL Server, and codes of
// drivers and Prisma. They also match error messages of `pg`, whose own errors have no codes.

/** The database has too many connections, or is out of memory or disk space. */
const throttled = /^(53\w{3}|1040|1203)$/;

/**
 * The transaction was rolled back, or no connection was made, so the database has done nothing. Lock timeouts
 * are not in this list, because earlier statements of the transaction may have had effects.
 */
const unprocessed =
  /^((40001|40P01|1213|P2034|0800[14]|53300|57P03|1040|1203|200[23]|45028|P1001|P2024|CONNECT_TIMEOUT|PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR)$|timeout exceeded when trying to connect)/;

/** The connection was lost, the server is shutting down, or another transaction holds the lock. */
const transient =
  /^((08\w{3}|57P0\w|1053|1927|2006|2013|P1002|P1008|P1017|55P03|1020|1205|CONNECTION_(CLOSED|DESTROYED)|PROTOCOL_CONNECTION_LOST|PROTOCOL_SEQUENCE_TIMEOUT|SQLITE_(5|6|15))$|SQLITE_(BUSY|LOCKED|PROTOCOL)|Connection terminated)/;

/**
 * Classifies temporary failures of databases: lost connections, deadlocks, serialization failures, locks,
 * lack of memory or disk space.
 */
export const sql: Pack<'sql'> = /* @__PURE__ */ definePack('sql', (error) => {
  const { code, sqlState, errno, number, message, errcode } = error;
  // The lower 8 bits of `errcode` are SQLite's primary result code.
  const names = [code, sqlState, errno, number, message, `SQLITE_${Number(errcode) & 255}`].map(String);
  const isOneOf = (pattern: RegExp) => names.some((name) => pattern.test(name));
  const isThrottled = isOneOf(throttled);
  const isUnprocessed = isOneOf(unprocessed);
  if (!isThrottled && !isUnprocessed && !isOneOf(transient)) return undefined;
  return { class: isThrottled ? 'throttled' : 'transient', unprocessed: isUnprocessed };
});
