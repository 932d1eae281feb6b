/** Order by key: only the head of a lane is in \`ready\`. */
export const lanes = `
CREATE FUNCTION line_of(suspect boolean, attempts int) RETURNS smallint LANGUAGE sql IMMUTABLE AS
  $$ SELECT (CASE WHEN suspect THEN 2 WHEN attempts > 0 THEN 1 ELSE 0 END)::smallint $$;

-- Finds the heads of lanes of which nothing is claimable or in hand. A lane without events goes, unless someone who is publishing to
-- it has locked it: then it stays idle, and the next who claims looks again.
CREATE FUNCTION advance_lanes(t int, names text[]) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  PERFORM 1 FROM lane WHERE topic = t AND lane = ANY (names) ORDER BY lane FOR NO KEY UPDATE;
  -- A statement of its own: it sees what was published before the locks were had.
  WITH heads AS MATERIALIZED (
    SELECT l.lane, e.seq, e.due_at, e.attempts, e.suspect, e.blocking
    FROM unnest(names) AS l(lane) LEFT JOIN LATERAL (
      SELECT seq, due_at, attempts, suspect, blocking FROM event
      WHERE topic = t AND event.lane = l.lane ORDER BY seq LIMIT 1
    ) AS e ON true
  ), emptied AS (
    DELETE FROM lane WHERE ctid = ANY (ARRAY(
      SELECT lane.ctid FROM lane JOIN heads USING (lane)
      WHERE lane.topic = t AND heads.seq IS NULL FOR UPDATE OF lane SKIP LOCKED))
    RETURNING lane
  ), moved AS (
    UPDATE lane SET head = heads.seq FROM heads
    WHERE lane.topic = t AND lane.lane = heads.lane AND (heads.seq IS NOT NULL OR lane.head IS NOT NULL)
      AND NOT EXISTS (SELECT FROM emptied WHERE emptied.lane = lane.lane)
  )
  INSERT INTO ready SELECT t, line_of(suspect, attempts), due_at, seq FROM heads
  WHERE seq IS NOT NULL AND NOT blocking;
END $$;

-- Puts new events of an ordered topic into their lanes. The lanes must be locked by enter_lanes.
CREATE FUNCTION enter_lanes(t int, names text[]) RETURNS text[] LANGUAGE plpgsql SET search_path FROM CURRENT
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  sorted text[] := ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(names) AS u(n) WHERE n IS NOT NULL ORDER BY 1);
  made text[] := '{}';
  locked int;
BEGIN
  LOOP
    WITH new AS (
      INSERT INTO lane (topic, lane) SELECT t, n FROM unnest(sorted) AS u(n) ON CONFLICT DO NOTHING RETURNING lane
    ) SELECT made || coalesce(array_agg(lane), '{}') INTO made FROM new;
    -- Keeps the lanes from going; whoever settles in them does not wait for us.
    SELECT count(*) INTO locked FROM (
      SELECT FROM lane WHERE topic = t AND lane = ANY (sorted) FOR KEY SHARE) AS l;
    EXIT WHEN locked = cardinality(sorted);
  END LOOP;
  RETURN made;
END $$;
`;
