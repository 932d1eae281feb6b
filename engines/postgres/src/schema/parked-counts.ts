/**
 * For small tables with outdated statistics: plans are made once, and do not depend on the number of rows.
 */
const fewRows = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET plan_cache_mode = force_generic_plan`;

/**
 * Finds the latest event of a group in the order of an index. While the statistics are outdated, PostgreSQL expects
 * one row in a group, and would sort all its rows: 11 s for a million events.
 */
const inIndexOrder = `${fewRows} SET enable_sort = off`;

const countedRows = `(SELECT status, topic, fingerprint, count FROM parked_count
    UNION ALL SELECT status, topic, fingerprint, count FROM parked_count_delta) AS c
  WHERE status = ANY (statuses) AND (topics IS NULL OR topic = ANY (topics))
    AND (fingerprints IS NULL OR fingerprint = ANY (fingerprints))`;

/**
 * The largest groups, each with its first and its last event. `places` lists the statuses and topics where to
 * look for them.
 */
const groupsOf = (places: string, condition: string) => `
    WITH counted AS (
      SELECT status, topic, fingerprint, sum(count)::bigint AS count FROM ${countedRows}
      GROUP BY status, topic, fingerprint HAVING sum(count) > 0
    ), page AS (
      SELECT fingerprint, sum(count)::bigint AS count, array_agg(status) AS statuses, array_agg(topic) AS topics FROM counted
      GROUP BY fingerprint
      HAVING after_count IS NULL OR sum(count) < after_count OR (sum(count) = after_count AND fingerprint > after_fingerprint)
      ORDER BY sum(count) DESC, fingerprint LIMIT most
    )
    SELECT page.fingerprint, latest.reason, latest.message, page.count, first.parked_at, latest.parked_at,
      ARRAY(SELECT DISTINCT t FROM unnest(page.topics) AS u(t) ORDER BY t)
    FROM page,
    LATERAL (SELECT l.* FROM ${places}, LATERAL (
      SELECT id, parked_at, reason, message FROM parked
      WHERE parked.status = p.status AND parked.fingerprint = page.fingerprint ${condition}
      ORDER BY status DESC, fingerprint DESC, parked_at DESC, id DESC LIMIT 1) AS l ORDER BY l.parked_at DESC, l.id DESC LIMIT 1) AS latest,
    LATERAL (SELECT min(f.parked_at) AS parked_at FROM ${places}, LATERAL (
      SELECT parked_at FROM parked WHERE parked.status = p.status AND parked.fingerprint = page.fingerprint ${condition}
      ORDER BY status, fingerprint, parked_at LIMIT 1) AS f) AS first
    ORDER BY page.count DESC, page.fingerprint`;

/**
 * Counts parked events by status, topic and fingerprint. Triggers append changes, so that transactions never
 * wait for each other; `fold_parked_counts` adds them up.
 */
export const parkedCounts = `
CREATE TABLE parked_count (
  status text NOT NULL,
  topic text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  -- The count is below 0 for a time, if a later change was added first.
  count bigint NOT NULL,
  PRIMARY KEY (status, topic, fingerprint)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE TABLE parked_count_delta (
  status text NOT NULL,
  topic text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION count_parked_insert() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO parked_count_delta SELECT status, topic, fingerprint, count(*) FROM added GROUP BY status, topic, fingerprint;
  RETURN NULL;
END $$;
CREATE FUNCTION count_parked_update() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO parked_count_delta SELECT status, topic, fingerprint, sum(n) FROM (
    SELECT status, topic, fingerprint, 1 AS n FROM added UNION ALL SELECT status, topic, fingerprint, -1 FROM gone
  ) AS change GROUP BY status, topic, fingerprint HAVING sum(n) <> 0;
  RETURN NULL;
END $$;
CREATE FUNCTION count_parked_delete() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO parked_count_delta SELECT status, topic, fingerprint, -count(*) FROM gone GROUP BY status, topic, fingerprint;
  RETURN NULL;
END $$;
CREATE TRIGGER parked_insert AFTER INSERT ON parked REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION count_parked_insert();
CREATE TRIGGER parked_update AFTER UPDATE ON parked REFERENCING OLD TABLE AS gone NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION count_parked_update();
CREATE TRIGGER parked_delete AFTER DELETE ON parked REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION count_parked_delete();

-- Adds changes to the counts, and returns how many. Only one transaction does this at a time.
CREATE FUNCTION fold_parked_counts(most int) RETURNS int LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  folded int;
  zeros tid[];
BEGIN
  IF NOT pg_try_advisory_xact_lock('parked_count_delta'::regclass::int, 0) THEN RETURN 0; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH gone AS (
    DELETE FROM parked_count_delta WHERE ctid = ANY (ARRAY(SELECT ctid FROM parked_count_delta LIMIT most))
    RETURNING status, topic, fingerprint, count
  ), added AS (
    INSERT INTO parked_count AS c SELECT status, topic, fingerprint, sum(count) FROM gone GROUP BY status, topic, fingerprint
    ON CONFLICT (status, topic, fingerprint) DO UPDATE SET count = c.count + excluded.count RETURNING c.ctid AS place, c.count
  ) SELECT (SELECT count(*) FROM gone), (SELECT array_agg(place) FROM added WHERE count = 0) INTO folded, zeros;
  DELETE FROM parked_count WHERE ctid = ANY (zeros);
  RETURN folded;
END $$;

-- Returns how many parked events there are. An array that is null matches all.
CREATE FUNCTION count_parked(statuses text[], topics text[], fingerprints text[]) RETURNS bigint
LANGUAGE plpgsql STABLE ${fewRows} AS $$
#variable_conflict use_column
BEGIN
  RETURN (SELECT coalesce(sum(count), 0) FROM ${countedRows});
END $$;

-- Returns groups of parked events, the largest first, after the group with after_count and after_fingerprint.
CREATE FUNCTION parked_groups(statuses text[], topics text[], fingerprints text[], after_count bigint, after_fingerprint text, most int)
RETURNS TABLE (fingerprint text, reason text, message text, count bigint, first_at bigint, last_at bigint, all_topics text[])
LANGUAGE plpgsql STABLE ${inIndexOrder} AS $$
#variable_conflict use_column
BEGIN
  IF topics IS NULL THEN
    RETURN QUERY ${groupsOf('(SELECT DISTINCT u.status FROM unnest(page.statuses) AS u(status)) AS p', '')};
  ELSE
    RETURN QUERY ${groupsOf('unnest(page.statuses, page.topics) AS p(status, topic)', 'AND parked.topic = p.topic')};
  END IF;
END $$;
`;
