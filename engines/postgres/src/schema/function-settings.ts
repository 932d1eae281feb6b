/**
 * Planner settings for SQL functions that read a few rows by an index. The statistics of a queue are always out of
 * date, so plans must not depend on them. For the same reason, statements find rows in lateral subqueries with a limit,
 * and change them by `ctid`.
 */
export const indexLookupsOnly = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;

/**
 * Commits of leases do not wait for the disk, so a server crash may undo a lease. The events of that lease are then due
 * again early. A settlement of the lost lease changes nothing, so no effect happens twice.
 */
export const asyncCommit = `PERFORM set_config('synchronous_commit', 'off', true);`;
