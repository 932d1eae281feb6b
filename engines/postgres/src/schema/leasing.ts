import { asyncCommit, indexLookupsOnly } from './function-settings.ts';

/**
 * True if the event is in quarantine. Events of one key may have different tenants, so each event is checked.
 */
const orHeld = `OR has_quarantine AND EXISTS (SELECT FROM control c
          WHERE c.topic = t.name AND c.kind = 'quarantine' AND (c.tenant = event.tenant OR c.key = event.key))`;

/** Functions that lease events, and end leases whose time is over. */
export const leasing = `
-- Ends leases whose time is over. Their events become suspects.
CREATE FUNCTION expire_leases(t int, now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  dead bigint[];
  tokens bigint[];
  names text[];
BEGIN
  -- All parts of a lease group: of two transactions that end one part each, the second sees that none is left.
  PERFORM 1 FROM lease_group WHERE token = ANY (ARRAY(
    SELECT token FROM lease_group WHERE topic = t AND ends_at <= now AND has_followers ORDER BY ends_at LIMIT 20)) ORDER BY token, part FOR UPDATE;
  WITH ended AS (
    DELETE FROM lease_group WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM lease_group WHERE topic = t AND ends_at <= now ORDER BY ends_at LIMIT 20 FOR UPDATE SKIP LOCKED))
    RETURNING token, seqs
  ) SELECT array_agg(seq), array_agg(DISTINCT token) INTO dead, tokens FROM ended, unnest(seqs) AS u(seq);
  IF dead IS NULL THEN RETURN; END IF;
  WITH suspects AS (
    UPDATE event e SET suspect = true, deaths = deaths + 1 WHERE seq = ANY (dead)
    RETURNING e.seq, e.due_at, e.order_key
  ), placed AS (
    INSERT INTO ready SELECT t, 2, due_at, seq FROM suspects WHERE order_key IS NULL
  ) SELECT array_agg(DISTINCT order_key) INTO names FROM suspects WHERE order_key IS NOT NULL;
  IF names IS NOT NULL THEN PERFORM advance_keys(t, keys_without_lease(t, names, tokens)); END IF;
END $$;

-- Returns the keys that have no leased event any more. A head and its followers share a lease group.
CREATE FUNCTION keys_without_lease(t int, names text[], tokens bigint[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT ARRAY(
    SELECT n FROM unnest(names) AS u(n) WHERE n NOT IN (
      SELECT e.order_key FROM lease_group h, unnest(h.seqs) AS s(seq), LATERAL (SELECT order_key FROM event WHERE event.seq = s.seq LIMIT 1) AS e
      WHERE h.token = ANY (tokens) AND h.has_followers AND e.order_key IS NOT NULL))
$$;

-- Takes the oldest due events of one queue. Events under quarantine are moved to another queue, so that they are read only once.
CREATE FUNCTION claim(t topic, from_queue int, max_events int, scan_start bigint, now bigint, has_quarantine boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  found bigint[];
  kept bigint[] := '{}';
  held bigint[];
  places tid[];
BEGIN
  IF NOT has_quarantine THEN
    WITH taken AS (
      DELETE FROM ready WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ready WHERE topic = t.topic AND queue = from_queue AND due_at BETWEEN scan_start AND now
        ORDER BY topic, queue, due_at, seq LIMIT max_events FOR UPDATE SKIP LOCKED))
      RETURNING due_at, seq
    ) SELECT array_agg(seq ORDER BY due_at, seq) INTO found FROM taken;
    RETURN coalesce(found, '{}');
  END IF;
  FOR look IN 1..20 LOOP
    SELECT coalesce(array_agg(seq ORDER BY due_at, seq), '{}'), array_agg(place) INTO found, places FROM (
      SELECT seq, due_at, ctid AS place FROM ready WHERE topic = t.topic AND queue = from_queue AND due_at <= now
      ORDER BY topic, queue, due_at, seq LIMIT max_events - cardinality(kept) FOR UPDATE SKIP LOCKED) AS f;
    held := ARRAY(
      SELECT e.seq FROM event e WHERE e.seq = ANY (found) AND EXISTS (SELECT FROM control c
        WHERE c.topic = t.name AND c.kind = 'quarantine' AND (c.tenant = e.tenant OR c.key = e.key)));
    UPDATE ready SET queue = queue + 10 WHERE ctid = ANY (places) AND seq = ANY (held);
    DELETE FROM ready WHERE ctid = ANY (places) AND seq <> ALL (held);
    kept := kept || ARRAY(SELECT s FROM unnest(found) AS u(s) WHERE s <> ALL (held));
    EXIT WHEN cardinality(held) = 0 OR cardinality(kept) >= max_events;
  END LOOP;
  RETURN kept;
END $$;

-- Returns heads with their followers, in order: at most run_max events of a key, and max_events in all. The first follower that cannot
-- run ends the run of its key, because a later one must not overtake it.
CREATE FUNCTION with_followers(t topic, heads bigint[], run_max int, max_events int, now bigint, has_quarantine boolean,
  pauses_retries boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  batch bigint[];
  is_broken boolean;
BEGIN
  SELECT array_agg(coalesce(r.seq, h.seq) ORDER BY h.place, r.seq), bool_or(r.stops) INTO batch, is_broken
  FROM unnest(heads) WITH ORDINALITY AS h(seq, place)
  CROSS JOIN LATERAL (SELECT order_key FROM event WHERE event.seq = h.seq LIMIT 1) AS e
  LEFT JOIN LATERAL (
    SELECT seq, seq <> h.seq AND (suspect OR blocking OR due_at > now OR pauses_retries AND attempts > 0 ${orHeld}) AS stops FROM event
    WHERE topic = t.topic AND order_key BETWEEN e.order_key AND e.order_key AND seq >= h.seq ORDER BY order_key, seq LIMIT run_max
  ) AS r ON true;
  IF is_broken THEN
    SELECT array_agg(seq ORDER BY place, seq) INTO batch FROM (
      SELECT h.place, coalesce(r.seq, h.seq) AS seq, bool_or(r.stops) OVER (PARTITION BY h.place ORDER BY r.seq) AS has_stopped
      FROM unnest(heads) WITH ORDINALITY AS h(seq, place)
      CROSS JOIN LATERAL (SELECT order_key FROM event WHERE event.seq = h.seq LIMIT 1) AS e
      LEFT JOIN LATERAL (
        SELECT seq, seq <> h.seq AND (suspect OR blocking OR due_at > now OR pauses_retries AND attempts > 0 ${orHeld}) AS stops FROM event
        WHERE topic = t.topic AND order_key BETWEEN e.order_key AND e.order_key AND seq >= h.seq ORDER BY order_key, seq LIMIT run_max
      ) AS r ON true
    ) AS run WHERE has_stopped IS NOT TRUE;
  END IF;
  RETURN batch[1:max_events];
END $$;

-- Returns how many events fit into bytes_max, at least 1. PostgreSQL knows the size of a value without reading it.
CREATE FUNCTION fitting(chosen bigint[], bytes_max bigint) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT greatest(1, count(*) FILTER (WHERE bytes <= bytes_max))::int FROM (
    SELECT sum(e.size) OVER (ORDER BY c.place) AS bytes
    FROM unnest(chosen) WITH ORDINALITY AS c(seq, place), LATERAL (
      SELECT coalesce(octet_length(body), 0) + coalesce(octet_length(bytes), 0) AS size
      FROM event WHERE event.seq = c.seq LIMIT 1) AS e) AS sums
$$;

-- The first row has counts and times as JSON (in extras). The other rows are the deliveries, oldest due first. scan_start is the due time
-- at which the reading of the ready queue begins, or 0 for its front. Claimed events leave dead entries at the front of the index until
-- vacuum removes them. A consumer that leases without a pause need not walk over them each time. If the lease is not full, the rest is
-- taken from the front.
CREATE FUNCTION lease(topic_name text, who text, max_events int, lease_ms double precision, run_max int, share double precision, alone boolean,
  scan_start bigint, bytes_max bigint)
RETURNS TABLE (token bigint, seq bigint, id text, body text, bytes bytea, bytes_are_text boolean, type text, key text, tenant text,
  extras text, origin text, replay text, first_seen_at bigint, expires_at bigint, patience_left bigint, trials text)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  now bigint := now_ms();
  is_paused boolean;
  pauses_retries boolean;
  has_quarantine boolean;
  suspects int;
  next_due bigint;
  retries_due int;
  firsts_due int;
  of_retries int := 0;
  chosen bigint[] := '{}';
  heads bigint[];
  tokens bigint[];
  group_size int := 200;
  was_asleep boolean;
  idle_keys text[];
  first_due bigint;
  takes_followers boolean := t.ordering = 'key' AND run_max > 1 AND NOT alone;
  more bigint[];
  batch bigint[];
  mean double precision := run_max;
  fit int;
  unfit bigint[];
BEGIN
  ${asyncCommit}
  IF EXISTS (SELECT FROM control WHERE until <= now) THEN
    PERFORM end_controls(now);
    t := topic_of(topic_name); -- read again: releasing may be true now
  END IF;
  IF EXISTS (SELECT FROM lease_group WHERE topic = t.topic AND ends_at <= now) THEN PERFORM expire_leases(t.topic, now); END IF;
  IF t.ordering = 'key' AND EXISTS (SELECT FROM active_key WHERE topic = t.topic AND idle) THEN
    WITH looked AS (
      UPDATE active_key SET idle = false WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM active_key WHERE topic = t.topic AND idle LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED)) RETURNING order_key
    ) SELECT array_agg(order_key) INTO idle_keys FROM looked;
    PERFORM advance_keys(t.topic, idle_keys);
  END IF;
  IF t.releasing THEN PERFORM release_held(t); END IF;
  SELECT coalesce(bool_or(kind = 'pause'), false), coalesce(bool_or(kind = 'pause_retries'), false), coalesce(bool_or(kind = 'quarantine'), false)
    INTO is_paused, pauses_retries, has_quarantine FROM control WHERE control.topic = t.name;

  IF max_events > 0 AND NOT is_paused AND NOT (alone AND pauses_retries) THEN
    IF alone THEN
      chosen := claim(t, 2, 1, 0, now, has_quarantine);
    ELSE
      retries_due := CASE WHEN pauses_retries THEN 0 ELSE (SELECT count(*) FROM (
        SELECT FROM ready WHERE topic = t.topic AND queue = 1 AND due_at <= now LIMIT max_events) AS r) END;
      IF retries_due > 0 THEN
        firsts_due := (SELECT count(*) FROM (
          SELECT FROM ready WHERE topic = t.topic AND queue = 0 AND due_at <= now LIMIT max_events) AS f);
        IF retries_due + firsts_due <= max_events THEN
          of_retries := retries_due;
        ELSIF share IS NULL OR max_events = 1 THEN
          of_retries := (SELECT count(*) FILTER (WHERE queue = 1) FROM (
            (SELECT queue, due_at, seq FROM ready WHERE topic = t.topic AND queue = 0 AND due_at <= now
              ORDER BY due_at, seq LIMIT max_events)
            UNION ALL
            (SELECT queue, due_at, seq FROM ready WHERE topic = t.topic AND queue = 1 AND due_at <= now
              ORDER BY due_at, seq LIMIT max_events)
            ORDER BY due_at, seq LIMIT max_events) AS merged);
        ELSE
          of_retries := least(retries_due,
            greatest(least(max_events - 1, greatest(1, floor(max_events * share)::int)), max_events - firsts_due));
        END IF;
        IF of_retries > 0 THEN chosen := claim(t, 1, of_retries, 0, now, has_quarantine); END IF;
      END IF;
      IF takes_followers AND cardinality(chosen) > 0 THEN
        heads := chosen;
        chosen := with_followers(t, heads, run_max, greatest(of_retries, max_events - firsts_due), now, has_quarantine, pauses_retries);
      END IF;
      IF NOT takes_followers AND cardinality(chosen) < max_events AND scan_start > 0 THEN
        chosen := chosen || claim(t, 0, max_events - cardinality(chosen), scan_start, now, has_quarantine);
      END IF;
      IF NOT takes_followers AND cardinality(chosen) < max_events THEN
        chosen := chosen || claim(t, 0, max_events - cardinality(chosen), 0, now, has_quarantine);
      END IF;
      IF NOT takes_followers AND of_retries > 0 THEN
        chosen := ARRAY(SELECT seq FROM event WHERE seq = ANY (chosen) ORDER BY due_at, seq);
      END IF;
      -- The number of heads to claim depends on how many followers each has.
      WHILE takes_followers AND cardinality(chosen) < max_events LOOP
        more := claim(t, 0, ceil((max_events - cardinality(chosen)) / mean)::int, scan_start, now, has_quarantine);
        IF cardinality(more) = 0 AND scan_start > 0 THEN
          scan_start := 0;
          CONTINUE;
        END IF;
        EXIT WHEN cardinality(more) = 0;
        heads := coalesce(heads, '{}') || more;
        batch := with_followers(t, more, run_max, max_events - cardinality(chosen), now, has_quarantine, pauses_retries);
        chosen := chosen || batch;
        mean := greatest(1, cardinality(batch)::float / cardinality(more));
      END LOOP;
      first_due := (SELECT due_at FROM event WHERE seq = chosen[1]);
    END IF;
  END IF;

  IF bytes_max IS NOT NULL AND cardinality(chosen) > 1 THEN
    fit := fitting(chosen, bytes_max);
    unfit := chosen[fit + 1 :];
    chosen := chosen[1:fit];
    IF heads IS NULL AND cardinality(unfit) > 0 THEN
      INSERT INTO ready SELECT t.topic, queue_of(suspect, attempts), due_at, seq FROM event WHERE seq = ANY (unfit);
    END IF;
  END IF;
  IF heads IS NOT NULL THEN
    -- Heads that did not fit go back to the ready queue.
    INSERT INTO ready SELECT t.topic, queue_of(suspect, attempts), due_at, seq FROM event
      WHERE seq = ANY (heads) AND seq <> ALL (chosen);
    group_size := greatest(1, cardinality(chosen));
  END IF;

  suspects := CASE WHEN pauses_retries THEN 0 ELSE
    (SELECT count(*) FROM (SELECT FROM ready WHERE topic = t.topic AND queue = 2 LIMIT 1) AS s) END;
  IF cardinality(chosen) < max_events AND NOT is_paused THEN
    next_due := least(
      (SELECT due_at FROM ready WHERE topic = t.topic AND queue = 0 ORDER BY due_at LIMIT 1),
      (SELECT due_at FROM ready WHERE topic = t.topic AND queue = 1 AND NOT pauses_retries ORDER BY due_at LIMIT 1));
  END IF;
  -- A lease that is not full means that this consumer will soon sleep; a full one, that no consumer needs a notification.
  SELECT asleep INTO was_asleep FROM bell WHERE topic = t.topic;
  IF was_asleep IS NULL OR (was_asleep <> (cardinality(chosen) < max_events) AND NOT alone) THEN
    INSERT INTO bell VALUES (t.topic, cardinality(chosen) < max_events)
      ON CONFLICT (topic) DO UPDATE SET asleep = excluded.asleep;
  END IF;

  RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL, NULL::bytea, NULL::boolean, NULL, NULL, NULL,
    json_build_array(suspects, CASE WHEN next_due IS NOT NULL THEN greatest(0, next_due - now) END, (SELECT version FROM control_sheet),
      first_due)::text,
    NULL, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL;
  IF cardinality(chosen) = 0 THEN RETURN; END IF;

  tokens := ARRAY(SELECT new_token('lease_token') FROM generate_series(0, (cardinality(chosen) - 1) / group_size));
  INSERT INTO lease_group (token, topic, owner, ends_at, has_followers, seqs)
    SELECT tokens[n + 1], t.topic, who, now + ceil(lease_ms)::bigint, heads IS NOT NULL,
      chosen[n * group_size + 1 : (n + 1) * group_size]
    FROM generate_series(0, cardinality(tokens) - 1) AS g(n);
  RETURN QUERY SELECT tokens[(c.place - 1) / group_size + 1], e.seq, e.id, e.body, e.bytes, e.bytes_are_text, e.type, e.key,
    e.tenant, e.extras, e.origin, e.replay, e.first_seen_at, e.expires_at, 
    CASE WHEN e.expires_at IS NOT NULL THEN greatest(0, e.expires_at - now) END,
    CASE WHEN e.suspect OR e.attempts > 0 OR e.snoozes > 0 OR e.story IS NOT NULL THEN json_build_array(
      e.attempts, e.snoozes, e.deaths, e.suspect, e.next_delay_ms, e.last_error::json, e.story::json)::text END
  FROM unnest(chosen) WITH ORDINALITY AS c(seq, place), LATERAL (SELECT * FROM event WHERE event.seq = c.seq LIMIT 1) AS e
  ORDER BY c.place;
END $$;
`;
