import { indexLookupsOnly } from './function-settings.ts';

/** SQL that inserts the arguments of `publish` and `put_events` as events. */
const insertEvents = `INSERT INTO event (topic, id, first_seen_at, due_at, expires_at, body, bytes, bytes_are_text, type, key, tenant,
      order_key, extras, origin, replay)
    SELECT t.topic, id, coalesce(seen, now), coalesce(ceil(due)::bigint, now + coalesce(ceil(delay)::bigint, 0)),
      now + ceil(patience)::bigint, body, byte, coalesce(byte_text, false), type, key, tenant,
      CASE WHEN t.ordering = 'key' THEN key END, extra, origin, replay
    FROM unnest(ids, bodies, all_bytes, byte_texts, types, keys, tenants, all_extras, origins, seen, replays, delays, dues, patiences)
      WITH ORDINALITY AS given(id, body, byte, byte_text, type, key, tenant, extra, origin, seen, replay, delay, due, patience, place)
    ORDER BY place`;

const foundByReplays = `FROM unnest(ids, replays) AS given(id, replay),
        LATERAL (SELECT b.seq, b.replay FROM event b WHERE b.topic = t.topic AND b.id = given.id LIMIT 1) AS old
        WHERE given.replay IS NOT NULL AND old.replay IS DISTINCT FROM given.replay`;

/** Functions that publish events. */
export const publishing = `
-- Returns the row of a topic. Fails if the topic was never declared.
CREATE FUNCTION topic_of(wanted text) RETURNS topic LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
  t topic;
BEGIN
  SELECT * INTO t FROM topic WHERE name = wanted;
  IF NOT FOUND THEN RAISE EXCEPTION '%', wanted USING ERRCODE = 'HF404'; END IF;
  RETURN t;
END $$;

-- Stores new events, or returns false if an id is stored already. That hardly ever happens, and looking for the ids first costs as much as
-- storing the events.
CREATE FUNCTION put_events(t topic, now bigint, ids text[], bodies text[], all_bytes bytea[], byte_texts boolean[], types text[],
  keys text[], tenants text[], all_extras text[], origins text[], seen bigint[], replays text[], delays double precision[],
  dues double precision[], patiences double precision[]) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  WITH put AS (
    ${insertEvents}
    RETURNING seq, due_at, order_key
  )
  INSERT INTO ready SELECT t.topic, 0, due_at, seq FROM put WHERE order_key IS NULL;
  RETURN true;
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END $$;

-- An array that is null is null for every event. Returns the places of events that were stored already, and whether a consumer sleeps.
CREATE FUNCTION publish(topic_name text, ids text[], bodies text[], all_bytes bytea[], byte_texts boolean[], types text[],
  keys text[], tenants text[], all_extras text[], origins text[], seen bigint[], replays text[], delays double precision[],
  dues double precision[], patiences double precision[], OUT duplicates int[], OUT asleep boolean)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  now bigint := now_ms();
  is_new boolean;
  made text[] := '{}';
  stored text[];
  known text[];
BEGIN
  IF t.ordering = 'key' AND keys IS NOT NULL THEN made := lock_keys(t.topic, keys); END IF;
  is_new := put_events(t, now, ids, bodies, all_bytes, byte_texts, types, keys, tenants, all_extras, origins, seen, replays, delays,
    dues, patiences);
  IF NOT is_new THEN
    WITH put AS (
      ${insertEvents}
      ON CONFLICT (topic, id) DO NOTHING
      RETURNING seq, id, due_at, order_key
    ), placed AS (
      INSERT INTO ready SELECT t.topic, 0, due_at, seq FROM put WHERE order_key IS NULL
    )
    SELECT array_agg(id) INTO stored FROM put;
  END IF;
  IF cardinality(made) > 0 THEN PERFORM advance_keys(t.topic, made); END IF;
  IF NOT is_new THEN
    -- The replay of a parked event that blocks its key takes the place of that event.
    WITH back AS (
      UPDATE event SET blocking = false, first_seen_at = coalesce(seen, now), body = given.body, bytes = byte,
        bytes_are_text = coalesce(byte_text, false), type = given.type, tenant = given.tenant, extras = extra,
        origin = given.origin, replay = given.replay, attempts = 0, snoozes = 0, deaths = 0, suspect = false,
        next_delay_ms = NULL, last_error = NULL, story = NULL, expires_at = now + ceil(patience)::bigint,
        due_at = coalesce(ceil(due)::bigint, now + coalesce(ceil(delay)::bigint, 0))
      FROM unnest(ids, bodies, all_bytes, byte_texts, types, tenants, all_extras, origins, seen, replays, delays, dues, patiences)
        AS given(id, body, byte, byte_text, type, tenant, extra, origin, seen, replay, delay, due, patience),
        LATERAL (SELECT b.ctid AS place FROM event b WHERE b.topic = t.topic AND b.id = given.id AND b.blocking LIMIT 1 FOR UPDATE) AS old
      WHERE event.ctid = old.place
      RETURNING event.id, event.seq, event.order_key, event.due_at
    ), placed AS (
      INSERT INTO ready SELECT t.topic, 0, back.due_at, back.seq FROM back WHERE NOT EXISTS (
        SELECT FROM event e WHERE e.topic = t.topic AND e.order_key = back.order_key AND e.seq < back.seq)
    )
    SELECT array_agg(id) INTO known FROM back;
    stored := coalesce(stored, '{}') || coalesce(known, '{}');
    IF replays IS NOT NULL THEN
      -- An event that is stored already belongs to this replay from now on, which counts its outcome. Locked in one order by all transactions.
      PERFORM 1 FROM event WHERE seq = ANY (ARRAY(SELECT old.seq ${foundByReplays})) ORDER BY seq FOR UPDATE;
      UPDATE event SET replay = found.replay FROM (SELECT old.seq, given.replay ${foundByReplays}) AS found
        WHERE event.seq = found.seq;
    END IF;
    -- If an id occurs twice in a batch, the first is stored and the second is a duplicate.
    duplicates := ARRAY(
      SELECT place::int FROM (
        SELECT id, place, row_number() OVER (PARTITION BY id ORDER BY place) AS nth
        FROM unnest(ids) WITH ORDINALITY AS given(id, place)) AS numbered
      WHERE nth > 1 OR id <> ALL (stored) ORDER BY place);
  END IF;
  asleep := coalesce((SELECT b.asleep FROM bell AS b WHERE b.topic = t.topic), false);
END $$;
`;
