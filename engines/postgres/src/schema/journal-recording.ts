/**
 * Plans must not depend on statistics, so tables are read by index only. Hash joins are allowed for
 * arguments.
 */
const settings = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_mergejoin = off`;

/** Functions that record the starts and the progress of assemblies. */
export const journalRecording = `
-- Returns the number of a worker. If its lease has ended, the lease is extended. The worker is not removed before this transaction ends.
CREATE FUNCTION live_worker(given text, lease_ms double precision, now bigint) RETURNS int LANGUAGE plpgsql ${settings} AS $$
DECLARE
  found int;
BEGIN
  LOOP
    SELECT w.worker INTO found FROM assembly_worker w WHERE w.name = given AND w.ends_at > now;
    IF found IS NULL THEN
      INSERT INTO assembly_worker AS w (name, ends_at) VALUES (given, now + ceil(lease_ms)::bigint)
        ON CONFLICT (name) DO UPDATE SET ends_at = greatest(w.ends_at, excluded.ends_at) RETURNING w.worker INTO found;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), found);
    EXIT WHEN EXISTS (SELECT FROM assembly_worker w WHERE w.worker = found);
  END LOOP;
  RETURN found;
END $$;

-- Lets the next assembly of this key be leased, because one was given back. Call it with the queue locked.
CREATE FUNCTION unblock_assembly(q int, k text) RETURNS void LANGUAGE sql AS $$
  UPDATE assembly_due SET line = q WHERE seq = (
    SELECT seq FROM assembly_due WHERE line = -q AND key = k ORDER BY due_at LIMIT 1)
$$;

-- Makes an assembly due, if it has no lease. Call it with the assembly locked. If a claim is taking the assembly at this moment, the update
-- waits for the claim and finds no row. Then the lease is there.
CREATE FUNCTION make_assembly_due(a assembly, due bigint) RETURNS void LANGUAGE plpgsql ${settings} AS $$
BEGIN
  UPDATE assembly_due d SET due_at = least(d.due_at, due), line = a.queue WHERE d.seq = a.seq;
  IF FOUND THEN RETURN; END IF;
  INSERT INTO assembly_due SELECT a.program, a.queue, due, a.seq, 0, a.key
    WHERE NOT EXISTS (SELECT FROM assembly_lease l WHERE l.seq = a.seq) ON CONFLICT (seq) DO NOTHING;
END $$;

-- Stores a signal for an assembly, and makes the assembly due.
CREATE FUNCTION signal_assembly(target text, signal_id text, signal_name text, body text, bytes bytea, now bigint) RETURNS text
LANGUAGE plpgsql ${settings} AS $$
DECLARE
  a assembly;
BEGIN
  SELECT * INTO a FROM assembly WHERE id = target FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  IF EXISTS (SELECT FROM assembly_signal s WHERE s.seq = a.seq AND s.id = signal_id) THEN RETURN 'repeated'; END IF;
  IF a.state >= 2 THEN RETURN 'ended'; END IF;
  INSERT INTO assembly_signal VALUES (a.seq, now,
    1 + coalesce((SELECT number FROM assembly_signal s WHERE s.seq = a.seq ORDER BY number DESC LIMIT 1), 0), signal_id, signal_name, body, bytes);
  UPDATE assembly SET revision = revision + 1 WHERE seq = a.seq;
  IF a.state = 0 THEN PERFORM make_assembly_due(a, now); END IF;
  RETURN 'accepted';
END $$;

-- Records starts and progress of many assemblies in one write. start_entries has 0, or the number of the progress entry to which a start
-- belongs. nexts has 0 to keep the lease, 1 to suspend, 2 to return, 3 for done, 4 for stopped and 5 to park. started has 0 for accepted,
-- 1 for repeated and 2 for a mismatch. revisions has -1 for a lost lease.
CREATE FUNCTION record_assemblies(
  start_entries int[], ids text[], programs int[], inputs text[], input_bytes bytea[], queues int[], keys text[], tenants text[],
  settings text[], patiences double precision[], delays double precision[], keeps double precision[], leased boolean[],
  worker_name text, lease_ms double precision, new_token bigint,
  seqs bigint[], tokens bigint[], workers int[], nexts smallint[], dues double precision[], known_revisions int[], results text[],
  result_bytes bytea[], notes text[], stops text[], commits boolean[], clears boolean[],
  step_entries int[], paths text[], orders int[], kinds smallint[], states smallint[], attempts int[], ats bigint[],
  step_dues double precision[], step_results text[], step_bytes bytea[], rests text[],
  signal_entries int[], targets text[], signal_ids text[], signal_names text[], payloads text[], payload_bytes bytea[])
RETURNS TABLE (now bigint, started smallint[], started_seqs bigint[], worker int, revisions int[], asleep boolean)
LANGUAGE plpgsql ${settings} AS $$
#variable_conflict use_variable
DECLARE
  places int[];
  old_queues int[];
  is_due boolean := false;
  n record;
BEGIN
  now := now_ms();
  IF worker_name IS NOT NULL THEN worker := live_worker(worker_name, lease_ms, now); END IF;

  IF seqs IS NOT NULL THEN
    -- Whoever takes over from a dead worker needs this lock alone. So the leases that are found now stay until this transaction ends.
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), w) FROM (SELECT DISTINCT u.w FROM unnest(workers) AS u(w) ORDER BY 1) AS d;
    SELECT array_agg(coalesce(l.revision, -1) ORDER BY g.place),
      array_agg(DISTINCT l.queue) FILTER (WHERE l.queue > 0 AND nexts[g.place] > 0)
    INTO revisions, old_queues
    FROM unnest(seqs, tokens, workers) WITH ORDINALITY AS g(seq, token, worker, place)
    LEFT JOIN LATERAL (
      SELECT a.revision, l.queue FROM assembly_lease l JOIN assembly a ON a.seq = l.seq
      WHERE l.seq = g.seq AND l.token = g.token AND l.worker = g.worker LIMIT 1) AS l ON true;
    IF old_queues IS NOT NULL THEN
      PERFORM 1 FROM assembly_queue q WHERE q.queue = ANY (old_queues) ORDER BY q.queue FOR UPDATE;
    END IF;
  END IF;

  IF paths IS NOT NULL THEN
    INSERT INTO assembly_step AS s (seq, at, due_at, step_order, attempts, kind, state, path, result, result_bytes, rest)
      SELECT seqs[g.entry], g.at, now + ceil(g.due)::bigint, g.step_order, g.attempts, g.kind, g.state, g.path, g.result, g.bytes, g.rest
      FROM unnest(step_entries, paths, orders, kinds, states, attempts, ats, step_dues, step_results, step_bytes, rests)
        AS g(entry, path, step_order, kind, state, attempts, at, due, result, bytes, rest)
      WHERE revisions[g.entry] >= 0
      ON CONFLICT (seq, path) DO UPDATE SET at = excluded.at, due_at = excluded.due_at, step_order = excluded.step_order,
        attempts = excluded.attempts, kind = excluded.kind, state = excluded.state, result = excluded.result,
        result_bytes = excluded.result_bytes, rest = excluded.rest;
  END IF;

  IF ids IS NOT NULL THEN
    WITH given AS (
      SELECT g.*, nextval('assembly_seq') AS seq
      FROM unnest(start_entries, ids, programs, inputs, input_bytes, queues, keys, tenants, settings, patiences, delays, keeps, leased)
        WITH ORDINALITY AS g(entry, id, program, input, bytes, queue, key, tenant, settings, patience, delay, keep, leased, place)
      WHERE g.entry = 0 OR revisions[g.entry] >= 0
    ), added AS (
      INSERT INTO assembly AS a (seq, id, program, queue, accepted_at, expires_at, keep_ms, key, tenant, input, input_bytes, settings)
        SELECT g.seq, g.id, g.program, g.queue, now, now + ceil(g.patience)::bigint, ceil(g.keep)::bigint, g.key, g.tenant, g.input,
          g.bytes, g.settings FROM given g ORDER BY g.id
        ON CONFLICT (id) DO NOTHING RETURNING a.seq, a.id
    ), placed AS (
      SELECT g.*, a.seq AS new_seq FROM given g LEFT JOIN added a ON a.seq = g.seq
    ), leases AS (
      INSERT INTO assembly_lease SELECT p.new_seq, new_token, worker, 0, 0, p.key FROM placed p WHERE p.new_seq IS NOT NULL AND p.leased
    ), waiting AS (
      INSERT INTO assembly_due SELECT p.program, p.queue, now + ceil(p.delay)::bigint, p.new_seq, 0, p.key
      FROM placed p WHERE p.new_seq IS NOT NULL AND NOT p.leased
    ) SELECT array_agg(CASE WHEN p.new_seq IS NULL THEN 1 ELSE 0 END::smallint ORDER BY p.place) FILTER (WHERE p.entry = 0),
        array_agg(p.new_seq ORDER BY p.place) FILTER (WHERE p.entry = 0), bool_or(p.new_seq IS NOT NULL AND NOT p.leased)
      INTO started, started_seqs, is_due FROM placed p;
    IF 1 = ANY (started) THEN
      started := ARRAY(
        SELECT CASE WHEN s.kind = 0 THEN 0 WHEN k.same THEN 1 ELSE 2 END::smallint
        FROM (SELECT g.*, row_number() OVER (ORDER BY g.place) AS number FROM unnest(start_entries, ids, programs, inputs, input_bytes)
          WITH ORDINALITY AS g(entry, id, program, input, bytes, place) WHERE g.entry = 0) AS g
        JOIN unnest(started) WITH ORDINALITY AS s(kind, number) ON s.number = g.number
        LEFT JOIN LATERAL (
          SELECT a.input IS NOT DISTINCT FROM g.input AND a.input_bytes IS NOT DISTINCT FROM g.bytes AND old.name = new.name AS same
          FROM assembly a JOIN assembly_program old ON old.program = a.program JOIN assembly_program new ON new.program = g.program
          WHERE a.id = g.id LIMIT 1) AS k ON true
        ORDER BY g.place);
    END IF;
  END IF;

  places := ARRAY(SELECT p FROM generate_subscripts(seqs, 1) AS g(p) WHERE revisions[p] >= 0
    AND (nexts[p] > 0 OR stops[p] IS NOT NULL OR commits[p]) ORDER BY seqs[p]);
  IF cardinality(places) > 0 OR targets IS NOT NULL THEN
    -- In the order of numbers, so that two batches never wait for each other.
    PERFORM 1 FROM assembly a WHERE a.seq = ANY (ARRAY(
      SELECT seqs[p] FROM unnest(places) AS u(p)
      UNION SELECT t.seq FROM unnest(targets) AS g(id), LATERAL (SELECT t.seq FROM assembly t WHERE t.id = g.id LIMIT 1) AS t))
      ORDER BY a.seq FOR NO KEY UPDATE;
  END IF;
  IF targets IS NOT NULL THEN
    FOR n IN SELECT * FROM unnest(signal_entries, targets, signal_ids, signal_names, payloads, payload_bytes)
      AS g(entry, target, id, name, body, bytes) WHERE revisions[g.entry] >= 0
    LOOP
      is_due := signal_assembly(n.target, n.id, n.name, n.body, n.bytes, now) = 'accepted' OR is_due;
    END LOOP;
  END IF;
  IF clears IS NOT NULL THEN
    UPDATE assembly_lease l SET deaths = 0 FROM unnest(seqs, clears, revisions) AS g(seq, clear, revision)
      WHERE l.seq = g.seq AND g.clear AND g.revision >= 0 AND l.deaths > 0;
  END IF;
  IF stops IS NOT NULL OR commits IS NOT NULL THEN
    UPDATE assembly a SET stop = coalesce(a.stop, g.stop), is_committed = a.is_committed OR coalesce(g.commit, false)
      FROM unnest(seqs, stops, commits, revisions) AS g(seq, stop, commit, revision)
      WHERE a.seq = g.seq AND g.revision >= 0 AND (g.stop IS NOT NULL OR g.commit);
  END IF;
  IF cardinality(places) > 0 THEN
    is_due := leave_assemblies(places, seqs, nexts, dues, known_revisions, results, result_bytes, notes, now) OR is_due;
  END IF;
  asleep := is_due AND coalesce((SELECT b.asleep FROM bell b WHERE b.topic = 0), false);
  RETURN NEXT;
END $$;

-- Ends the leases of these places. Call it with the assemblies and their queues locked. Returns true if something is due.
CREATE FUNCTION leave_assemblies(places int[], seqs bigint[], nexts smallint[], dues double precision[], known_revisions int[],
  results text[], result_bytes bytea[], notes text[], now bigint) RETURNS boolean LANGUAGE plpgsql ${settings} AS $$
DECLARE
  left_seqs bigint[];
  has_parked boolean;
  has_queue boolean;
  is_due boolean;
  n record;
BEGIN
  left_seqs := ARRAY(SELECT seqs[p] FROM unnest(places) AS u(p) WHERE nexts[p] > 0);
  IF cardinality(left_seqs) = 0 THEN RETURN false; END IF;
  SELECT bool_or(a.state = 1), bool_or(a.queue > 0) INTO has_parked, has_queue
    FROM unnest(left_seqs) AS g(seq), LATERAL (SELECT state, queue FROM assembly a WHERE a.seq = g.seq LIMIT 1) AS a;
  IF has_parked THEN
    DELETE FROM assembly_parked WHERE seq = ANY (left_seqs);
    UPDATE assembly SET state = 0, parked = NULL WHERE seq = ANY (left_seqs) AND state = 1;
  END IF;
  -- One that was asked to stop meanwhile is not at its end.
  UPDATE assembly a SET result = coalesce(g.result, a.result), result_bytes = coalesce(g.bytes, a.result_bytes),
      state = CASE WHEN g.next = 3 AND a.stop IS NOT NULL THEN 0 ELSE g.next - 1 END,
      ended_at = CASE WHEN g.next = 3 AND a.stop IS NOT NULL THEN NULL ELSE now END,
      removed_at = CASE WHEN g.next = 3 AND a.stop IS NOT NULL THEN NULL ELSE now + a.keep_ms END
    FROM (SELECT seqs[p] AS seq, nexts[p] AS next, results[p] AS result, result_bytes[p] AS bytes FROM unnest(places) AS u(p)
      WHERE nexts[p] IN (3, 4)) AS g WHERE a.seq = g.seq;
  IF 5 = ANY (nexts) THEN
    WITH parked AS (
      UPDATE assembly a SET state = 1, parked = notes[p] FROM unnest(places) AS u(p) WHERE nexts[p] = 5 AND a.seq = seqs[p] RETURNING a.seq
    ) INSERT INTO assembly_parked SELECT seq FROM parked ON CONFLICT DO NOTHING;
  END IF;
  WITH ended AS (
    DELETE FROM assembly_lease WHERE seq = ANY (left_seqs) RETURNING seq, deaths
  ), due AS (
    INSERT INTO assembly_due AS d
      SELECT a.program, a.queue, w.due_at, a.seq, CASE WHEN nexts[u.p] = 2 THEN e.deaths ELSE 0 END, a.key
      FROM unnest(places) AS u(p) JOIN ended e ON e.seq = seqs[u.p],
        LATERAL (SELECT * FROM assembly a WHERE a.seq = e.seq LIMIT 1) AS a,
        LATERAL (SELECT CASE
          WHEN nexts[u.p] = 2 OR (nexts[u.p] = 3 AND a.stop IS NOT NULL) THEN now
          WHEN nexts[u.p] IN (3, 4) THEN NULL
          WHEN a.revision > known_revisions[u.p] THEN now
          ELSE now + ceil(dues[u.p])::bigint END AS due_at) AS w
      WHERE w.due_at IS NOT NULL
      ON CONFLICT (seq) DO UPDATE SET program = excluded.program, line = excluded.line, due_at = excluded.due_at, deaths = excluded.deaths
      RETURNING d.due_at
  ) SELECT coalesce(bool_or(due_at <= now), false) INTO is_due FROM due;
  IF has_queue THEN
    FOR n IN SELECT a.queue, a.key FROM assembly a WHERE a.seq = ANY (left_seqs) AND a.queue > 0 AND a.key IS NOT NULL LOOP
      PERFORM unblock_assembly(n.queue, n.key);
    END LOOP;
    is_due := true;
  END IF;
  RETURN is_due;
END $$;
`;
