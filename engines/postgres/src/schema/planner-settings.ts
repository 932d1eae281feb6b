/**
 * For functions whose every statement looks up rows by an index and a handful of values. Planned once and for good: statistics of a queue
 * are always out of date, and no plan that reads all of a topic may ever look cheap. For the same reason rows are looked up in a lateral
 * subquery with a limit, which cannot be turned round, and changed by where they are (their lock is had before). Functions that are called
 * by these only, and say nothing themselves, are planned under the same settings.
 */
export const quick = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off`;
