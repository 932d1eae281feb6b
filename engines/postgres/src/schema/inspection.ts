import { indexLookupsOnly } from './function-settings.ts';

/** Functions that count and list the waiting events of a topic. */
export const inspection = `
-- Expires leases whose time is over, for functions that only read.
CREATE FUNCTION brought_up_to_date(topic_name text) RETURNS topic LANGUAGE plpgsql ${indexLookupsOnly} AS $$
DECLARE
  t topic := topic_of(topic_name);
BEGIN
  WHILE EXISTS (SELECT FROM lease_group WHERE topic = t.topic AND ends_at <= now_ms() FOR UPDATE SKIP LOCKED) LOOP
    PERFORM expire_leases(t.topic, now_ms());
  END LOOP;
  RETURN t;
END $$;

-- Counts the events of a topic by state. as_of is the time of counting.
CREATE FUNCTION counts(topic_name text, OUT ready bigint, OUT delayed bigint, OUT behind bigint, OUT held bigint, OUT leased bigint,
  OUT suspect bigint, OUT blocking bigint, OUT oldest_ready_ms bigint, OUT next_due_in_ms bigint, OUT as_of bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  t topic := brought_up_to_date(topic_name);
  now bigint := now_ms();
  oldest bigint;
  first bigint;
BEGIN
  IF EXISTS (SELECT FROM control c WHERE c.topic = t.name AND c.kind = 'quarantine') THEN
    SELECT count(*) FILTER (WHERE NOT h AND queue < 2 AND due_at <= now), count(*) FILTER (WHERE NOT h AND queue < 2 AND due_at > now),
      count(*) FILTER (WHERE h), count(*) FILTER (WHERE NOT h AND queue = 2), min(due_at) FILTER (WHERE NOT h AND queue < 2)
      INTO ready, delayed, held, suspect, first
      FROM (SELECT r.queue % 10 AS queue, r.due_at, is_held(t, e.tenant, e.key) AS h FROM ready r
        JOIN event e ON e.seq = r.seq WHERE r.topic = t.topic) AS r;
  ELSE
    SELECT count(*) FILTER (WHERE queue < 2 AND due_at <= now), count(*) FILTER (WHERE queue < 2 AND due_at > now), 0,
      count(*) FILTER (WHERE queue = 2), min(due_at) FILTER (WHERE queue < 2) INTO ready, delayed, held, suspect, first
      FROM (SELECT queue % 10 AS queue, due_at FROM ready WHERE topic = t.topic) AS r;
  END IF;
  leased := (SELECT coalesce(sum(cardinality(seqs)), 0) FROM lease_group WHERE topic = t.topic);
  blocking := (SELECT count(*) FROM event WHERE topic = t.topic AND event.blocking);
  behind := CASE t.ordering WHEN 'none' THEN 0 ELSE
    (SELECT count(*) FROM event WHERE topic = t.topic) - ready - delayed - held - suspect - leased - blocking END;
  oldest_ready_ms := CASE WHEN ready > 0 THEN greatest(0, now - first) ELSE 0 END;
  next_due_in_ms := CASE WHEN first IS NOT NULL THEN greatest(0, first - now) END;
  as_of := now;
END $$;

-- Counts events by the ms until they are due, without leased and blocking ones. The bounds are ascending.
CREATE FUNCTION due(topic_name text, bounds double precision[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t topic := brought_up_to_date(topic_name);
  now bigint := now_ms();
  result bigint[];
BEGIN
  WITH unleased AS (
    SELECT due_at FROM ready WHERE topic = t.topic AND t.ordering = 'none'
    UNION ALL
    SELECT due_at FROM event e WHERE topic = t.topic AND NOT blocking AND t.ordering = 'key' AND NOT EXISTS (
      SELECT FROM lease_group g, unnest(g.seqs) AS s(seq) WHERE g.topic = t.topic AND s.seq = e.seq)
  ), counted AS (
    SELECT width_bucket((due_at - now)::double precision, bounds) AS bucket, count(*) AS n FROM unleased GROUP BY 1
  )
  SELECT array_agg(coalesce(c.n, 0) ORDER BY b.bucket) INTO result
    FROM generate_series(0, cardinality(bounds)) AS b(bucket) LEFT JOIN counted c ON c.bucket = b.bucket;
  RETURN result;
END $$;

-- Returns events in these states, of this key and this tenant. Null matches all. The events come in the order of publication, or of due
-- time, and begin after the given place.
CREATE FUNCTION waiting(topic_name text, states text[], of_key text, of_tenant text, by_due boolean, after_due bigint, after_seq bigint, most int)
RETURNS TABLE (seq bigint, id text, type text, key text, tenant text, first_seen_at bigint, attempts int, snoozes int, deaths int,
  next_delay_ms double precision, last_error text, story text, state text, due_at bigint, owner text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
#variable_conflict use_column
DECLARE
  t topic := brought_up_to_date(topic_name);
  now bigint := now_ms();
  has_quarantine boolean := EXISTS (SELECT FROM control c WHERE c.topic = t.name AND c.kind = 'quarantine');
  is_filtered boolean := of_key IS NOT NULL OR of_tenant IS NOT NULL OR has_quarantine;
  -- The first events of each queue are enough, if none of them is left out later.
  queue_most int := CASE WHEN by_due AND NOT is_filtered THEN most END;
  leases_most int := CASE WHEN states IS NULL OR 'leased' = ANY (states) THEN NULL ELSE 0 END;
  blocking_most int := CASE WHEN states IS NULL OR 'blocking' = ANY (states) THEN NULL ELSE 0 END;
  behind_most int := CASE WHEN t.ordering = 'key' AND (states IS NULL OR 'behind' = ANY (states)) THEN NULL ELSE 0 END;
BEGIN
  IF states IS NULL AND NOT by_due THEN
    RETURN QUERY
    SELECT e.seq, e.id, e.type, e.key, e.tenant, e.first_seen_at, e.attempts, e.snoozes, e.deaths, e.next_delay_ms, e.last_error, e.story,
      CASE WHEN e.blocking THEN 'blocking' WHEN h.owner IS NOT NULL THEN 'leased' WHEN r.queue IS NULL THEN 'behind'
        WHEN is_held(t, e.tenant, e.key) THEN 'held' WHEN r.queue % 10 = 2 THEN 'suspect' WHEN e.due_at > now THEN 'delayed'
        ELSE 'ready' END,
      e.due_at, h.owner
    FROM (SELECT * FROM event WHERE topic = t.topic AND event.seq > after_seq AND (of_key IS NULL OR key = of_key)
      AND (of_tenant IS NULL OR tenant = of_tenant) ORDER BY event.seq LIMIT most) AS e
    LEFT JOIN LATERAL (SELECT lease_group.owner FROM lease_group WHERE lease_group.topic = t.topic AND e.seq = ANY (lease_group.seqs) LIMIT 1) AS h ON true
    LEFT JOIN LATERAL (SELECT ready.queue FROM ready WHERE ready.topic = t.topic AND ready.queue IN (0, 1, 2, 10, 11, 12)
      AND ready.due_at = e.due_at AND ready.seq = e.seq LIMIT 1) AS r ON true
    ORDER BY e.seq;
    RETURN;
  END IF;
  states := coalesce(states, ARRAY['ready', 'delayed', 'behind', 'held', 'leased', 'suspect', 'blocking']);
  RETURN QUERY
  WITH leased AS MATERIALIZED (
    SELECT s.seq, g.owner FROM lease_group g, unnest(g.seqs) AS s(seq) WHERE g.topic = t.topic
  ), found AS (
    SELECT q.seq, q.state, NULL AS owner FROM unnest(ARRAY[0, 1, 2, 10, 11, 12]) AS each(queue), LATERAL (
      SELECT r.seq, CASE WHEN r.queue % 10 = 2 THEN 'suspect' WHEN r.due_at > now THEN 'delayed' ELSE 'ready' END AS state
      FROM ready r WHERE r.topic = t.topic AND r.queue = each.queue
        AND (NOT by_due OR (r.due_at, r.seq) > (after_due, after_seq)) AND (by_due OR r.seq > after_seq)
        AND (has_quarantine OR CASE WHEN r.queue % 10 = 2 THEN 'suspect' WHEN r.due_at > now THEN 'delayed' ELSE 'ready' END = ANY (states))
      ORDER BY r.topic, r.queue, r.due_at, r.seq LIMIT queue_most) AS q
    UNION ALL
    (SELECT l.seq, 'leased', l.owner FROM leased l LIMIT leases_most)
    UNION ALL
    (SELECT e.seq, 'blocking', NULL FROM event e WHERE e.topic = t.topic AND e.blocking LIMIT blocking_most)
    UNION ALL
    (SELECT e.seq, 'behind', NULL FROM event e WHERE e.topic = t.topic AND NOT e.blocking
      AND NOT EXISTS (SELECT FROM leased l WHERE l.seq = e.seq)
      AND NOT EXISTS (SELECT FROM ready r WHERE r.topic = t.topic AND r.queue IN (0, 1, 2, 10, 11, 12)
        AND r.due_at = e.due_at AND r.seq = e.seq) LIMIT behind_most)
  ), stated AS (
    SELECT e.*, f.owner, CASE WHEN has_quarantine AND f.state IN ('ready', 'delayed', 'suspect') AND is_held(t, e.tenant, e.key)
      THEN 'held' ELSE f.state END AS state
    FROM found f JOIN event e ON e.seq = f.seq
    WHERE (of_key IS NULL OR e.key = of_key) AND (of_tenant IS NULL OR e.tenant = of_tenant)
  )
  SELECT s.seq, s.id, s.type, s.key, s.tenant, s.first_seen_at, s.attempts, s.snoozes, s.deaths, s.next_delay_ms, s.last_error, s.story,
    s.state, s.due_at, s.owner
  FROM stated s WHERE s.state = ANY (states)
    AND CASE WHEN by_due THEN (s.due_at, s.seq) > (after_due, after_seq) ELSE s.seq > after_seq END
  ORDER BY CASE WHEN by_due THEN s.due_at END, s.seq LIMIT most;
END $$;
`;
