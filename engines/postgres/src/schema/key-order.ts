/**
 * Functions that keep events of one key in order. Only the earliest event of a key (its head) is in the table
 * `ready`.
 */
export const keyOrder = `
-- Returns the queue of the table ready that an event belongs to.
CREATE FUNCTION queue_of(suspect boolean, attempts int) RETURNS smallint LANGUAGE sql IMMUTABLE AS
  $$ SELECT (CASE WHEN suspect THEN 2 WHEN attempts > 0 THEN 1 ELSE 0 END)::smallint $$;

-- Puts the heads of these keys into the ready queue. Returns the keys that have no events.
CREATE FUNCTION enqueue_heads(t int, names text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  bare text[];
BEGIN
  WITH heads AS MATERIALIZED (
    SELECT u.name, e.seq, e.due_at, e.attempts, e.suspect, e.blocking FROM unnest(names) AS u(name) LEFT JOIN LATERAL (
      SELECT seq, due_at, attempts, suspect, blocking FROM event
      -- Not "=": the planner must use the index on order_key, and not walk the topic in order.
      WHERE topic = t AND order_key BETWEEN u.name AND u.name ORDER BY order_key, seq LIMIT 1
    ) AS e ON true
  ), placed AS (
    INSERT INTO ready SELECT t, queue_of(suspect, attempts), due_at, seq FROM heads WHERE seq IS NOT NULL AND NOT blocking
  )
  SELECT array_agg(name) INTO bare FROM heads WHERE seq IS NULL;
  RETURN bare;
END $$;

-- Puts the next heads into the ready queue, for keys that have no event that is ready, leased or blocking. A key without events is deleted.
-- If a publisher has locked it, it stays and is idle.
CREATE FUNCTION advance_keys(t int, names text[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  bare text[] := enqueue_heads(t, names);
  ours text[];
BEGIN
  IF bare IS NULL THEN RETURN; END IF;
  ours := ARRAY(
    SELECT u.name FROM unnest(bare) AS u(name), LATERAL (
      SELECT FROM active_key WHERE topic = t AND order_key = u.name LIMIT 1 FOR UPDATE SKIP LOCKED) AS l);
  IF cardinality(ours) < cardinality(bare) THEN
    UPDATE active_key SET idle = true WHERE ctid = ANY (ARRAY(
      SELECT l.place FROM unnest(bare) AS u(name), LATERAL (
        SELECT ctid AS place FROM active_key WHERE topic = t AND order_key = u.name AND NOT idle LIMIT 1) AS l
      WHERE u.name <> ALL (ours)));
  END IF;
  -- Again, because a publisher may have committed just before we had the lock.
  bare := enqueue_heads(t, ours);
  IF bare IS NULL THEN RETURN; END IF;
  DELETE FROM active_key WHERE ctid = ANY (ARRAY(
    SELECT l.place FROM unnest(bare) AS u(name), LATERAL (
      SELECT ctid AS place FROM active_key WHERE topic = t AND order_key = u.name LIMIT 1) AS l));
END $$;

-- Locks the keys of events that are published. Returns the keys that are new.
CREATE FUNCTION lock_keys(t int, names text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  sorted text[] := ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(names) AS u(n) WHERE n IS NOT NULL ORDER BY 1);
  made text[] := '{}';
  locked int;
BEGIN
  LOOP
    WITH new AS (
      INSERT INTO active_key (topic, order_key) SELECT t, n FROM unnest(sorted) AS u(n) ON CONFLICT DO NOTHING RETURNING order_key
    ) SELECT made || coalesce(array_agg(order_key), '{}') INTO made FROM new;
    -- Keeps the keys from being deleted; settlements of these keys do not wait for this lock.
    SELECT count(*) INTO locked FROM (
      SELECT FROM unnest(sorted) AS u(n), LATERAL (SELECT FROM active_key WHERE topic = t AND order_key = u.n LIMIT 1 FOR KEY SHARE) AS k) AS l;
    EXIT WHEN locked = cardinality(sorted);
  END LOOP;
  RETURN made;
END $$;
`;
