/**
 * Planner settings for SQL functions that read a few rows by an index. The statistics of a queue are always out of
 * date, so plans must not depend on them. For the same reason, statements find rows with lateral subqueries and a
 * limit.
 */
export const indexLookupsOnly = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;

/**
 * The commit of a lease does not wait for the disk, so a server crash may undo the lease. Its events are then leased
 * again. A settlement with the lost lease is refused, so no effect happens twice.
 */
export const asyncCommit = `PERFORM set_config('synchronous_commit', 'off', true);`;
