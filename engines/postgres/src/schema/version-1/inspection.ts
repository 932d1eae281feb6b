import { indexLookupsOnly } from '../function-settings.ts';

export const inspection = `
CREATE INDEX event_blocking ON event (topic) WHERE blocking;

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

CREATE FUNCTION is_held(t topic, of_tenant text, of_key text) RETURNS boolean LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT EXISTS (SELECT FROM control c WHERE c.topic = t.name AND c.kind = 'quarantine' AND coalesce(c.until > now_ms(), true)
    AND (c.tenant = of_tenant OR c.key = of_key))
$$;

CREATE FUNCTION counts(topic_name text, OUT ready bigint, OUT delayed bigint, OUT behind bigint, OUT held bigint, OUT leased bigint,
  OUT suspect bigint, OUT blocking bigint, OUT oldest_ready_ms bigint, OUT next_due_in_ms bigint)
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
END $$;

CREATE FUNCTION retry_now(topic_name text, ids text[]) RETURNS text[] LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := brought_up_to_date(topic_name);
  now bigint := now_ms();
  moved text[];
BEGIN
  WITH late AS (
    SELECT id, seq, due_at FROM event WHERE topic = t.topic AND id = ANY (ids) AND due_at > now AND NOT blocking ORDER BY id FOR UPDATE
  ), placed AS (
    UPDATE ready r SET due_at = now FROM late
    WHERE r.topic = t.topic AND r.queue IN (0, 1, 2, 10, 11, 12) AND r.due_at = late.due_at AND r.seq = late.seq
  ), resolved_ids AS (
    UPDATE event e SET due_at = now FROM late WHERE e.seq = late.seq RETURNING e.id
  ) SELECT array_agg(id) INTO moved FROM resolved_ids;
  RETURN coalesce(moved, '{}');
END $$;

CREATE FUNCTION unblock(topic_name text, ids text[]) RETURNS text[] LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  released text[];
  names text[];
BEGIN
  WITH gone AS (DELETE FROM event WHERE topic = t.topic AND id = ANY (ids) AND blocking RETURNING id, seq, order_key)
  SELECT array_agg(id), array_agg(DISTINCT order_key) FILTER (WHERE NOT EXISTS (
    SELECT FROM event e WHERE e.topic = t.topic AND e.order_key = gone.order_key AND e.seq < gone.seq AND e.seq <> ALL (
      SELECT g.seq FROM gone g))) INTO released, names FROM gone;
  IF names IS NOT NULL THEN PERFORM advance_keys(t.topic, names); END IF;
  RETURN coalesce(released, '{}');
END $$;

CREATE FUNCTION waiting(topic_name text, after bigint, most int)
RETURNS TABLE (seq bigint, id text, type text, key text, tenant text, first_seen_at bigint, attempts int, snoozes int, deaths int,
  next_delay_ms double precision, last_error text, story text, state text, due_at bigint, owner text)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := brought_up_to_date(topic_name);
  now bigint := now_ms();
BEGIN
  RETURN QUERY
  SELECT e.seq, e.id, e.type, e.key, e.tenant, e.first_seen_at, e.attempts, e.snoozes, e.deaths, e.next_delay_ms, e.last_error, e.story,
    CASE WHEN e.blocking THEN 'blocking' WHEN h.owner IS NOT NULL THEN 'leased' WHEN r.queue IS NULL THEN 'behind'
      WHEN is_held(t, e.tenant, e.key) THEN 'held' WHEN r.queue % 10 = 2 THEN 'suspect' WHEN e.due_at > now THEN 'delayed'
      ELSE 'ready' END,
    e.due_at, h.owner
  FROM (SELECT * FROM event WHERE topic = t.topic AND event.seq > after ORDER BY event.seq LIMIT most) AS e
  LEFT JOIN LATERAL (SELECT lease_group.owner FROM lease_group WHERE lease_group.topic = t.topic AND e.seq = ANY (lease_group.seqs) LIMIT 1) AS h ON true
  LEFT JOIN LATERAL (SELECT ready.queue FROM ready WHERE ready.topic = t.topic AND ready.queue IN (0, 1, 2, 10, 11, 12)
    AND ready.due_at = e.due_at AND ready.seq = e.seq LIMIT 1) AS r ON true
  ORDER BY e.seq;
END $$;
`;
