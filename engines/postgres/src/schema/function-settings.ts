/**
 * Planner settings for SQL functions in which every statement reads a few rows by an index. Plans must not depend on
 * table statistics: the statistics of a queue are always out of date, and a plan that reads a whole topic could then
 * look cheap. For the same reason, statements look up rows in a lateral subquery with a limit, which the planner cannot
 * reorder, and change them by `ctid` after they are locked. A function without settings that only these functions call
 * is planned with the same settings.
 */
export const indexLookupsOnly = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;

/**
 * Used in functions that lease events or extend leases: their commit does not wait for the disk, whatever durability
 * the connection has. A crash of the server may undo such a commit, and then the events are due again before the lease
 * would have ended. Nothing is lost and no effect happens twice: the worker's token is unknown to the database
 * (`new_token` never returns one twice), so its settlement changes nothing. A settlement waits for the disk, and so for
 * all commits before it.
 */
export const asyncCommit = `PERFORM set_config('synchronous_commit', 'off', true);`;
