import { unhurried } from './async-commit.ts';
import { quick } from './planner-settings.ts';

/** A quarantine holds what is behind a head, too: its tenant may be another. */
const orHeld = `OR has_quarantine AND EXISTS (SELECT FROM control c
          WHERE c.topic = t.name AND c.kind = 'quarantine' AND (c.tenant = event.tenant OR c.key = event.key))`;

export const leasing = `
-- Leases that have ended unsettled make suspects.
CREATE FUNCTION end_leases(t int, now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  dead bigint[];
  tokens bigint[];
  names text[];
BEGIN
  -- All parts of a hand, so that of two who end one each, one sees that nothing is left of it.
  PERFORM 1 FROM hand WHERE token = ANY (ARRAY(
    SELECT token FROM hand WHERE topic = t AND ends_at <= now AND has_runs ORDER BY ends_at LIMIT 20)) ORDER BY token, part FOR UPDATE;
  WITH ended AS (
    DELETE FROM hand WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM hand WHERE topic = t AND ends_at <= now ORDER BY ends_at LIMIT 20 FOR UPDATE SKIP LOCKED))
    RETURNING token, seqs
  ) SELECT array_agg(seq), array_agg(DISTINCT token) INTO dead, tokens FROM ended, unnest(seqs) AS u(seq);
  IF dead IS NULL THEN RETURN; END IF;
  WITH suspects AS (
    UPDATE event e SET suspect = true, deaths = deaths + 1 WHERE seq = ANY (dead)
    RETURNING e.seq, e.due_at, e.lane
  ), placed AS (
    INSERT INTO ready SELECT t, 2, due_at, seq FROM suspects WHERE lane IS NULL
  ) SELECT array_agg(DISTINCT lane) INTO names FROM suspects WHERE lane IS NOT NULL;
  IF names IS NOT NULL THEN PERFORM advance_lanes(t, lanes_at_rest(t, names, tokens)); END IF;
END $$;

-- Those of which nothing is in hand any more: runs share a hand.
CREATE FUNCTION lanes_at_rest(t int, names text[], tokens bigint[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT ARRAY(
    SELECT n FROM unnest(names) AS u(n) WHERE n NOT IN (
      SELECT e.lane FROM hand h, unnest(h.seqs) AS s(seq), LATERAL (SELECT lane FROM event WHERE event.seq = s.seq LIMIT 1) AS e
      WHERE h.token = ANY (tokens) AND h.has_runs AND e.lane IS NOT NULL))
$$;

-- Controls that end by themselves.
CREATE FUNCTION end_controls(now bigint) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  names text[];
BEGIN
  WITH ended AS (DELETE FROM control WHERE until <= now RETURNING topic, kind)
  SELECT array_agg(topic) INTO names FROM ended;
  IF names IS NULL THEN RETURN; END IF;
  UPDATE control_sheet SET version = version + 1;
  UPDATE topic SET releasing = true WHERE name = ANY (names);
END $$;

-- Puts back into line what no quarantine holds any more; true when nothing is left to look at.
CREATE FUNCTION release_held(t topic) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  moved int;
BEGIN
  WITH free AS (
    SELECT r.ctid FROM ready r WHERE r.topic = t.topic AND r.line >= 10 AND NOT EXISTS (
      SELECT FROM event e, control c WHERE e.seq = r.seq AND c.topic = t.name AND c.kind = 'quarantine'
        AND (c.tenant = e.tenant OR c.key = e.key))
    LIMIT 5000 FOR UPDATE SKIP LOCKED
  ), back AS (
    UPDATE ready SET line = line - 10 WHERE ctid = ANY (ARRAY(SELECT ctid FROM free)) RETURNING 1
  ) SELECT count(*) INTO moved FROM back;
  IF moved > 0 THEN RETURN false; END IF;
  UPDATE topic SET releasing = false WHERE topic = t.topic;
  RETURN true;
END $$;

-- Claims the oldest due of one line. What a quarantine holds is moved out of the way, so that it is walked over once.
CREATE FUNCTION claim(t topic, from_line int, most int, since bigint, now bigint, has_quarantine boolean) RETURNS bigint[]
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
        SELECT ctid FROM ready WHERE topic = t.topic AND line = from_line AND due_at BETWEEN since AND now
        ORDER BY topic, line, due_at, seq LIMIT most FOR UPDATE SKIP LOCKED))
      RETURNING due_at, seq
    ) SELECT array_agg(seq ORDER BY due_at, seq) INTO found FROM taken;
    RETURN coalesce(found, '{}');
  END IF;
  FOR look IN 1..20 LOOP
    SELECT coalesce(array_agg(seq ORDER BY due_at, seq), '{}'), array_agg(place) INTO found, places FROM (
      SELECT seq, due_at, ctid AS place FROM ready WHERE topic = t.topic AND line = from_line AND due_at <= now
      ORDER BY topic, line, due_at, seq LIMIT most - cardinality(kept) FOR UPDATE SKIP LOCKED) AS f;
    held := ARRAY(
      SELECT e.seq FROM event e WHERE e.seq = ANY (found) AND EXISTS (SELECT FROM control c
        WHERE c.topic = t.name AND c.kind = 'quarantine' AND (c.tenant = e.tenant OR c.key = e.key)));
    UPDATE ready SET line = line + 10 WHERE ctid = ANY (places) AND seq = ANY (held);
    DELETE FROM ready WHERE ctid = ANY (places) AND seq <> ALL (held);
    kept := kept || ARRAY(SELECT s FROM unnest(found) AS u(s) WHERE s <> ALL (held));
    EXIT WHEN cardinality(held) = 0 OR cardinality(kept) >= most;
  END LOOP;
  RETURN kept;
END $$;

-- Heads with those behind them, in order, at most so many of a lane and so many in all. A run ends at the first that cannot run: what is
-- after it may not overtake.
CREATE FUNCTION runs_of(t topic, heads bigint[], run_max int, most int, now bigint, has_quarantine boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  runs bigint[];
  is_broken boolean;
BEGIN
  SELECT array_agg(coalesce(r.seq, h.seq) ORDER BY h.place, r.seq), bool_or(r.stops) INTO runs, is_broken
  FROM unnest(heads) WITH ORDINALITY AS h(seq, place)
  CROSS JOIN LATERAL (SELECT lane FROM event WHERE event.seq = h.seq LIMIT 1) AS e
  LEFT JOIN LATERAL (
    SELECT seq, seq <> h.seq AND (suspect OR blocking OR due_at > now ${orHeld}) AS stops FROM event
    WHERE topic = t.topic AND lane BETWEEN e.lane AND e.lane AND seq >= h.seq ORDER BY lane, seq LIMIT run_max
  ) AS r ON true;
  IF is_broken THEN
    SELECT array_agg(seq ORDER BY place, seq) INTO runs FROM (
      SELECT h.place, coalesce(r.seq, h.seq) AS seq, bool_or(r.stops) OVER (PARTITION BY h.place ORDER BY r.seq) AS has_stopped
      FROM unnest(heads) WITH ORDINALITY AS h(seq, place)
      CROSS JOIN LATERAL (SELECT lane FROM event WHERE event.seq = h.seq LIMIT 1) AS e
      LEFT JOIN LATERAL (
        SELECT seq, seq <> h.seq AND (suspect OR blocking OR due_at > now ${orHeld}) AS stops FROM event
        WHERE topic = t.topic AND lane BETWEEN e.lane AND e.lane AND seq >= h.seq ORDER BY lane, seq LIMIT run_max
      ) AS r ON true
    ) AS run WHERE has_stopped IS NOT TRUE;
  END IF;
  RETURN runs[1:most];
END $$;

-- How many of them have room together, and one at least. The size of a value is known without reading it.
CREATE FUNCTION fitting(chosen bigint[], bytes_max bigint) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT greatest(1, count(*) FILTER (WHERE bytes <= bytes_max))::int FROM (
    SELECT sum(e.size) OVER (ORDER BY c.place) AS bytes
    FROM unnest(chosen) WITH ORDINALITY AS c(seq, place), LATERAL (
      SELECT coalesce(octet_length(body), 0) + coalesce(octet_length(bytes), 0) AS size
      FROM event WHERE event.seq = c.seq LIMIT 1) AS e) AS sums
$$;

-- The first row tells what stands besides (in extras); then the deliveries, oldest due first. since: where in the line to begin, 0 for
-- its front. Events that were claimed leave the front of an index full of entries that are walked over until vacuum comes; who claims
-- without a pause need not begin there each time. What it leaves free is taken from the front.
CREATE FUNCTION lease(topic_name text, who text, most int, lease_ms double precision, run_max int, share double precision, alone boolean,
  since bigint, bytes_max bigint)
RETURNS TABLE (token bigint, seq bigint, id text, body text, bytes bytea, bytes_are_text boolean, type text, key text, tenant text,
  extras text, origin text, replay text, first_seen_at bigint, expires_at bigint, patience_left bigint, trials text)
LANGUAGE plpgsql ${quick} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  now bigint := now_ms();
  is_paused boolean;
  has_quarantine boolean;
  suspects int;
  next_due bigint;
  retries_due int;
  firsts_due int;
  of_retries int := 0;
  chosen bigint[] := '{}';
  heads bigint[];
  tokens bigint[];
  per_hand int := 200;
  was_asleep boolean;
  idle_lanes text[];
  first_due bigint;
  takes_runs boolean := t.ordering = 'key' AND run_max > 1 AND NOT alone;
  more bigint[];
  runs bigint[];
  mean double precision := run_max;
  fit int;
  unfit bigint[];
BEGIN
  ${unhurried}
  IF EXISTS (SELECT FROM control WHERE until <= now) THEN
    PERFORM end_controls(now);
    t := topic_of(topic_name); -- what they held is to be released
  END IF;
  IF EXISTS (SELECT FROM hand WHERE topic = t.topic AND ends_at <= now) THEN PERFORM end_leases(t.topic, now); END IF;
  IF t.ordering = 'key' AND EXISTS (SELECT FROM lane WHERE topic = t.topic AND idle) THEN
    WITH looked AS (
      UPDATE lane SET idle = false WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM lane WHERE topic = t.topic AND idle LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED)) RETURNING lane
    ) SELECT array_agg(lane) INTO idle_lanes FROM looked;
    PERFORM advance_lanes(t.topic, idle_lanes);
  END IF;
  IF t.releasing THEN PERFORM release_held(t); END IF;
  SELECT coalesce(bool_or(kind = 'pause'), false), coalesce(bool_or(kind = 'quarantine'), false)
    INTO is_paused, has_quarantine FROM control WHERE control.topic = t.name;

  IF most > 0 AND NOT is_paused THEN
    IF alone THEN
      chosen := claim(t, 2, 1, 0, now, has_quarantine);
    ELSE
      retries_due := (SELECT count(*) FROM (
        SELECT FROM ready WHERE topic = t.topic AND line = 1 AND due_at <= now LIMIT most) AS r);
      IF retries_due > 0 THEN
        firsts_due := (SELECT count(*) FROM (
          SELECT FROM ready WHERE topic = t.topic AND line = 0 AND due_at <= now LIMIT most) AS f);
        IF retries_due + firsts_due <= most THEN
          of_retries := retries_due;
        ELSIF share IS NULL OR most = 1 THEN
          of_retries := (SELECT count(*) FILTER (WHERE line = 1) FROM (
            (SELECT line, due_at, seq FROM ready WHERE topic = t.topic AND line = 0 AND due_at <= now
              ORDER BY due_at, seq LIMIT most)
            UNION ALL
            (SELECT line, due_at, seq FROM ready WHERE topic = t.topic AND line = 1 AND due_at <= now
              ORDER BY due_at, seq LIMIT most)
            ORDER BY due_at, seq LIMIT most) AS merged);
        ELSE
          of_retries := least(retries_due,
            greatest(least(most - 1, greatest(1, floor(most * share)::int)), most - firsts_due));
        END IF;
        IF of_retries > 0 THEN chosen := claim(t, 1, of_retries, 0, now, has_quarantine); END IF;
      END IF;
      IF takes_runs AND cardinality(chosen) > 0 THEN
        heads := chosen;
        chosen := runs_of(t, heads, run_max, greatest(of_retries, most - firsts_due), now, has_quarantine);
      END IF;
      IF NOT takes_runs AND cardinality(chosen) < most AND since > 0 THEN
        chosen := chosen || claim(t, 0, most - cardinality(chosen), since, now, has_quarantine);
      END IF;
      IF NOT takes_runs AND cardinality(chosen) < most THEN
        chosen := chosen || claim(t, 0, most - cardinality(chosen), 0, now, has_quarantine);
      END IF;
      IF NOT takes_runs AND of_retries > 0 THEN
        chosen := ARRAY(SELECT seq FROM event WHERE seq = ANY (chosen) ORDER BY due_at, seq);
      END IF;
      -- How many heads it takes depends on how long their runs are.
      WHILE takes_runs AND cardinality(chosen) < most LOOP
        more := claim(t, 0, ceil((most - cardinality(chosen)) / mean)::int, since, now, has_quarantine);
        IF cardinality(more) = 0 AND since > 0 THEN
          since := 0;
          CONTINUE;
        END IF;
        EXIT WHEN cardinality(more) = 0;
        heads := coalesce(heads, '{}') || more;
        runs := runs_of(t, more, run_max, most - cardinality(chosen), now, has_quarantine);
        chosen := chosen || runs;
        mean := greatest(1, cardinality(runs)::float / cardinality(more));
      END LOOP;
      first_due := (SELECT due_at FROM event WHERE seq = chosen[1]);
    END IF;
  END IF;

  IF bytes_max IS NOT NULL AND cardinality(chosen) > 1 THEN
    fit := fitting(chosen, bytes_max);
    unfit := chosen[fit + 1 :];
    chosen := chosen[1:fit];
    IF heads IS NULL AND cardinality(unfit) > 0 THEN
      INSERT INTO ready SELECT t.topic, line_of(suspect, attempts), due_at, seq FROM event WHERE seq = ANY (unfit);
    END IF;
  END IF;
  IF heads IS NOT NULL THEN
    -- Heads for which there is no room go back in line.
    INSERT INTO ready SELECT t.topic, line_of(suspect, attempts), due_at, seq FROM event
      WHERE seq = ANY (heads) AND seq <> ALL (chosen);
    per_hand := greatest(1, cardinality(chosen));
  END IF;

  suspects := (SELECT count(*) FROM (SELECT FROM ready WHERE topic = t.topic AND line = 2 LIMIT 1) AS s);
  IF cardinality(chosen) < most AND NOT is_paused THEN
    next_due := least(
      (SELECT due_at FROM ready WHERE topic = t.topic AND line = 0 ORDER BY due_at LIMIT 1),
      (SELECT due_at FROM ready WHERE topic = t.topic AND line = 1 ORDER BY due_at LIMIT 1));
  END IF;
  -- Half-empty hands mean that this consumer will soon sleep; full ones, that nobody need be woken.
  SELECT asleep INTO was_asleep FROM bell WHERE topic = t.topic;
  IF was_asleep IS NULL OR (was_asleep <> (cardinality(chosen) < most) AND NOT alone) THEN
    INSERT INTO bell VALUES (t.topic, cardinality(chosen) < most)
      ON CONFLICT (topic) DO UPDATE SET asleep = excluded.asleep;
  END IF;

  RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL, NULL::bytea, NULL::boolean, NULL, NULL, NULL,
    json_build_array(suspects, CASE WHEN next_due IS NOT NULL THEN greatest(0, next_due - now) END, (SELECT version FROM control_sheet),
      first_due)::text,
    NULL, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL;
  IF cardinality(chosen) = 0 THEN RETURN; END IF;

  tokens := ARRAY(SELECT new_token('hand_token') FROM generate_series(0, (cardinality(chosen) - 1) / per_hand));
  INSERT INTO hand (token, topic, owner, ends_at, has_runs, seqs)
    SELECT tokens[n + 1], t.topic, who, now + ceil(lease_ms)::bigint, heads IS NOT NULL,
      chosen[n * per_hand + 1 : (n + 1) * per_hand]
    FROM generate_series(0, cardinality(tokens) - 1) AS g(n);
  RETURN QUERY SELECT tokens[(c.place - 1) / per_hand + 1], e.seq, e.id, e.body, e.bytes, e.bytes_are_text, e.type, e.key,
    e.tenant, e.extras, e.origin, e.replay, e.first_seen_at, e.expires_at, 
    CASE WHEN e.expires_at IS NOT NULL THEN greatest(0, e.expires_at - now) END,
    CASE WHEN e.suspect OR e.attempts > 0 OR e.snoozes > 0 OR e.story IS NOT NULL THEN json_build_array(
      e.attempts, e.snoozes, e.deaths, e.suspect, e.next_delay_ms, e.last_error::json, e.story::json)::text END
  FROM unnest(chosen) WITH ORDINALITY AS c(seq, place), LATERAL (SELECT * FROM event WHERE event.seq = c.seq LIMIT 1) AS e
  ORDER BY c.place;
END $$;
`;
