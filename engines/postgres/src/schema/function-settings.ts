/**
 * For SQL functions that read a few rows by an index. The statistics of a queue are always out of date, so
 * plans must not depend on them.
 */
export const indexLookupsOnly = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;

/**
 * The commit of a lease does not wait for the disk. If a server crash undoes it, the events are leased again,
 * and the lost lease cannot settle.
 */
export const asyncCommit = `PERFORM set_config('synchronous_commit', 'off', true);`;
