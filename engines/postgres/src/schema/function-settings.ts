/**
 * Planner settings for functions in which every statement looks up rows by an index and a few values. Their plans are made once and
 * never depend on statistics: those of a queue are always out of date, and a plan that reads all of a topic must never look cheap. For
 * the same reason rows are looked up in a lateral subquery with a limit, which the planner cannot reorder, and are changed by `ctid`
 * after they are locked. Functions without settings that are called only by these are planned under the same settings.
 */
export const indexLookupsOnly = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;

/**
 * For leases and their extensions: the commit does not wait for the disk, whatever durability the connection has. A crash of the server
 * may undo it, and then the events are due again before the lease would have ended. Nothing is lost and no effect is made twice: the
 * worker holds a token that the database does not know (`new_token` never gives one twice), so its settlement changes nothing. A
 * settlement does wait for the disk, and so for every commit before it.
 */
export const asyncCommit = `PERFORM set_config('synchronous_commit', 'off', true);`;
