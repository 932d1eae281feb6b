/** Order by key: only the head of a lane is in \`ready\`. */
export const lanes = `
CREATE FUNCTION line_of(suspect boolean, attempts int) RETURNS smallint LANGUAGE sql IMMUTABLE AS
  $$ SELECT (CASE WHEN suspect THEN 2 WHEN attempts > 0 THEN 1 ELSE 0 END)::smallint $$;

-- Makes the heads of these lanes claimable; answers with the lanes that have no events.
CREATE FUNCTION place_heads(t int, names text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  bare text[];
BEGIN
  WITH heads AS MATERIALIZED (
    SELECT u.name, e.seq, e.due_at, e.attempts, e.suspect, e.blocking FROM unnest(names) AS u(name) LEFT JOIN LATERAL (
      SELECT seq, due_at, attempts, suspect, blocking FROM event
      -- Not "=": a lane is to be found by its own index, and not by walking the topic in order.
      WHERE topic = t AND lane BETWEEN u.name AND u.name ORDER BY lane, seq LIMIT 1
    ) AS e ON true
  ), placed AS (
    INSERT INTO ready SELECT t, line_of(suspect, attempts), due_at, seq FROM heads WHERE seq IS NOT NULL AND NOT blocking
  )
  SELECT array_agg(name) INTO bare FROM heads WHERE seq IS NULL;
  RETURN bare;
END $$;

-- For lanes of which nothing is claimable, in hand or blocking. One without events goes, unless someone who is publishing to it has
-- locked it: then it stays idle.
CREATE FUNCTION advance_lanes(t int, names text[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  bare text[] := place_heads(t, names);
  ours text[];
BEGIN
  IF bare IS NULL THEN RETURN; END IF;
  ours := ARRAY(
    SELECT u.name FROM unnest(bare) AS u(name), LATERAL (
      SELECT FROM lane WHERE topic = t AND lane = u.name LIMIT 1 FOR UPDATE SKIP LOCKED) AS l);
  IF cardinality(ours) < cardinality(bare) THEN
    UPDATE lane SET idle = true WHERE ctid = ANY (ARRAY(
      SELECT l.place FROM unnest(bare) AS u(name), LATERAL (
        SELECT ctid AS place FROM lane WHERE topic = t AND lane = u.name AND NOT idle LIMIT 1) AS l
      WHERE u.name <> ALL (ours)));
  END IF;
  -- Again, because who published to it may have committed just before it was ours.
  bare := place_heads(t, ours);
  IF bare IS NULL THEN RETURN; END IF;
  DELETE FROM lane WHERE ctid = ANY (ARRAY(
    SELECT l.place FROM unnest(bare) AS u(name), LATERAL (
      SELECT ctid AS place FROM lane WHERE topic = t AND lane = u.name LIMIT 1) AS l));
END $$;

-- Locks the lanes that events are published to, and says which of them are new.
CREATE FUNCTION enter_lanes(t int, names text[]) RETURNS text[] LANGUAGE plpgsql AS $$
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
      SELECT FROM unnest(sorted) AS u(n), LATERAL (SELECT FROM lane WHERE topic = t AND lane = u.n LIMIT 1 FOR KEY SHARE) AS k) AS l;
    EXIT WHEN locked = cardinality(sorted);
  END LOOP;
  RETURN made;
END $$;
`;
