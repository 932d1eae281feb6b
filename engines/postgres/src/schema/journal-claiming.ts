import { asyncCommit } from './function-settings.ts';

const settings = `SET search_path FROM CURRENT SET jit = off SET enable_bitmapscan = off SET enable_mergejoin = off`;

/** Functions that lease assemblies to workers, and take them over from workers that died. */
export const journalClaiming = `
-- Gives back all assemblies of a worker. death is 1 if the worker died, and is added to the deaths of each. Returns how many there were.
CREATE FUNCTION give_back_assemblies(from_worker int, death int, now bigint) RETURNS int LANGUAGE plpgsql ${settings} AS $$
DECLARE
  moved int;
  n record;
BEGIN
  PERFORM 1 FROM assembly_queue q WHERE q.queue IN (SELECT l.queue FROM assembly_lease l WHERE l.worker = from_worker AND l.queue > 0)
    ORDER BY q.queue FOR UPDATE;
  FOR n IN SELECT DISTINCT l.queue, l.key FROM assembly_lease l WHERE l.worker = from_worker AND l.queue > 0 AND l.key IS NOT NULL LOOP
    PERFORM unblock_assembly(n.queue, n.key);
  END LOOP;
  WITH gone AS (
    DELETE FROM assembly_lease l WHERE l.worker = from_worker RETURNING l.seq, l.deaths, l.queue, l.key
  ), due AS (
    INSERT INTO assembly_due AS d SELECT a.program, g.queue, now, g.seq, g.deaths + death, g.key
      FROM gone g, LATERAL (SELECT a.program FROM assembly a WHERE a.seq = g.seq LIMIT 1) AS a
      ON CONFLICT (seq) DO UPDATE SET due_at = excluded.due_at, deaths = excluded.deaths
  ) SELECT count(*) INTO moved FROM gone;
  DELETE FROM assembly_worker w WHERE w.worker = from_worker;
  RETURN moved;
END $$;

-- Takes over from dead workers. A worker that is recording at this moment is alive after all, and is left alone.
CREATE FUNCTION recover_assemblies(except_worker int, now bigint) RETURNS void LANGUAGE plpgsql ${settings} AS $$
DECLARE
  dead int;
BEGIN
  FOR dead IN SELECT w.worker FROM assembly_worker w WHERE w.ends_at <= now AND w.worker <> except_worker
    ORDER BY w.worker LIMIT 20 FOR UPDATE SKIP LOCKED
  LOOP
    IF pg_try_advisory_xact_lock(hashtext(current_schema()), dead) THEN PERFORM give_back_assemblies(dead, 1, now); END IF;
  END LOOP;
END $$;

-- Renews the lease of a worker. was_alive is true if the lease had not ended.
CREATE FUNCTION renew_worker(given text, lease_ms double precision, now bigint, OUT worker int, OUT was_alive boolean)
LANGUAGE plpgsql ${settings} AS $$
#variable_conflict use_column
BEGIN
  was_alive := coalesce((SELECT w.ends_at > now FROM assembly_worker w WHERE w.name = given FOR UPDATE), false);
  INSERT INTO assembly_worker AS w (name, ends_at) VALUES (given, now + ceil(lease_ms)::bigint)
    ON CONFLICT (name) DO UPDATE SET ends_at = excluded.ends_at RETURNING w.worker INTO worker;
END $$;

-- Returns null if the limits of the queue let the assembly pass, and otherwise the time at which it may be asked for again. Returns 0 if it
-- must wait until another assembly of its key is given back. Call it with the queue locked.
CREATE FUNCTION held_back_until(q assembly_queue, of_seq bigint, of_key text, now bigint) RETURNS bigint LANGUAGE plpgsql ${settings} AS $$
DECLARE
  names text[];
  wait_ms double precision;
  r record;
BEGIN
  IF of_key IS NOT NULL AND q.limits ->> 'concurrencyByKey' IS NOT NULL AND (q.limits ->> 'concurrencyByKey')::double precision <=
    (SELECT count(*) FROM assembly_lease l WHERE l.queue = q.queue AND l.key = of_key AND l.queue > 0) THEN RETURN 0; END IF;
  IF (q.limits -> 'rate' IS NULL AND q.limits -> 'rateByKey' IS NULL)
    OR EXISTS (SELECT FROM assembly_charged c WHERE c.seq = of_seq) THEN RETURN NULL; END IF;
  SELECT coalesce(max(greatest(0, w.ms)), 0) INTO wait_ms FROM rates_of_queue(q, of_key) AS g,
    LATERAL (SELECT greatest(coalesce((SELECT tat FROM rate_limit k WHERE k.key = g.name), 0), now) - now - (g.burst - 1) / g.rate AS ms) AS w
    WHERE w.ms * g.rate >= 0.001;
  IF wait_ms > 0 THEN RETURN now + ceil(wait_ms)::bigint; END IF;
  INSERT INTO rate_limit AS k SELECT g.name, now + 1 / g.rate FROM rates_of_queue(q, of_key) AS g
    ON CONFLICT (key) DO UPDATE SET tat = greatest(k.tat, now) + excluded.tat - now;
  INSERT INTO assembly_charged VALUES (of_seq) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

-- Returns the rate limits of a queue that hold for an assembly of this key.
CREATE FUNCTION rates_of_queue(q assembly_queue, of_key text) RETURNS TABLE (name text, rate double precision, burst double precision)
LANGUAGE sql STABLE AS $$
  SELECT g.name, (g.rate ->> 'count')::double precision / (g.rate ->> 'perMs')::double precision, (g.rate ->> 'count')::double precision
  FROM (VALUES ('assembly queue ' || q.queue, q.limits -> 'rate'),
    (CASE WHEN of_key IS NOT NULL THEN 'assembly queue ' || q.queue || ' ' || of_key END, q.limits -> 'rateByKey')) AS g(name, rate)
  WHERE g.rate IS NOT NULL AND g.name IS NOT NULL
$$;

-- Returns how many more assemblies of a queue may be leased.
CREATE FUNCTION room_of_queue(q assembly_queue) RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT coalesce((q.limits ->> 'concurrency')::double precision - (SELECT count(*) FROM assembly_lease l
    WHERE l.queue = q.queue AND l.queue > 0), 'Infinity')
$$;

-- Returns due assemblies of these programs in a line, the longest due first. Those that another claim is taking are left out.
CREATE FUNCTION due_assemblies(programs int[], of_line int, now bigint, min_deaths int, max_deaths int, most int) RETURNS SETOF assembly_due
LANGUAGE sql SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
  SELECT d.* FROM unnest(programs) AS u(p), LATERAL (
    SELECT * FROM assembly_due d WHERE d.program = u.p AND d.line = of_line AND d.due_at <= now AND d.deaths BETWEEN min_deaths AND max_deaths
    ORDER BY d.program, d.line, d.due_at, d.seq LIMIT most FOR UPDATE SKIP LOCKED) AS d
  ORDER BY d.due_at, d.seq LIMIT most
$$;

-- Gives back the assemblies with these tokens. A claim or a start whose answer was lost may have leased them, and the worker does not know.
CREATE FUNCTION return_lost_assemblies(from_worker int, lost bigint[], now bigint) RETURNS void LANGUAGE sql ${settings} AS $$
  WITH gone AS (
    DELETE FROM assembly_lease l WHERE l.worker = from_worker AND l.token = ANY (lost) RETURNING l.seq, l.deaths, l.queue, l.key
  ) INSERT INTO assembly_due AS d SELECT a.program, g.queue, now, g.seq, g.deaths, g.key
    FROM gone g, LATERAL (SELECT a.program FROM assembly a WHERE a.seq = g.seq LIMIT 1) AS a
    ON CONFLICT (seq) DO UPDATE SET due_at = excluded.due_at, deaths = excluded.deaths
$$;

-- Leases due assemblies to a worker.
CREATE FUNCTION claim_assemblies(worker_name text, lease_ms double precision, new_token bigint, lost bigint[], most int, names text[],
  versions bigint[], suspect_deaths int, wants_suspect boolean)
RETURNS TABLE (now bigint, worker int, suspects int, next_due_in bigint, claimed bigint[])
LANGUAGE plpgsql ${settings} AS $$
#variable_conflict use_variable
DECLARE
  programs int[];
  lines int[] := '{0}';
  chosen bigint[] := '{}';
  candidate assembly_due;
  its_queue assembly_queue;
  room double precision;
  until bigint;
  was_asleep boolean;
BEGIN
  ${asyncCommit}
  now := now_ms();
  -- The worker's own lease is renewed first: what it has is not lost while nobody else has taken it.
  worker := (renew_worker(worker_name, lease_ms, now)).worker;
  PERFORM recover_assemblies(worker, now);
  IF lost IS NOT NULL THEN PERFORM return_lost_assemblies(worker, lost, now); END IF;
  programs := ARRAY(SELECT p.program FROM unnest(names, versions) AS g(name, version)
    JOIN assembly_program p ON p.name = g.name AND p.version = g.version);
  -- Queues are locked before rows are taken: whoever gives an assembly back does it in this order, too.
  lines := lines || ARRAY(SELECT q.queue FROM assembly_queue q WHERE EXISTS (
    SELECT FROM unnest(programs) AS u(p), LATERAL (SELECT FROM assembly_due d WHERE d.program = u.p AND d.line = q.queue LIMIT 1) AS d)
    ORDER BY q.queue);
  IF cardinality(lines) > 1 THEN PERFORM 1 FROM assembly_queue q WHERE q.queue = ANY (lines) ORDER BY q.queue FOR UPDATE; END IF;

  suspects := CASE WHEN suspect_deaths = 2147483647 THEN 0 ELSE (
    SELECT count(*) FROM unnest(lines) AS l(line), unnest(programs) AS u(p), LATERAL (
      SELECT FROM assembly_due d WHERE d.program = u.p AND d.line = l.line AND d.due_at <= now AND d.deaths >= suspect_deaths LIMIT 1) AS s) END;
  IF wants_suspect THEN
    SELECT g.* INTO candidate FROM unnest(lines) AS l(line), LATERAL due_assemblies(programs, l.line, now, suspect_deaths, 2147483647, 1) AS g
      ORDER BY g.due_at, g.seq LIMIT 1;
    IF candidate.seq IS NOT NULL THEN
      SELECT a.* INTO its_queue FROM assembly_queue a WHERE a.queue = candidate.line;
      IF candidate.line = 0 OR (room_of_queue(its_queue) > 0 AND held_back_until(its_queue, candidate.seq, candidate.key, now) IS NULL) THEN
        chosen := ARRAY[candidate.seq];
      END IF;
    END IF;
  ELSE
    chosen := ARRAY(SELECT g.seq FROM due_assemblies(programs, 0, now, 0, suspect_deaths - 1, most) AS g);
    FOR its_queue IN SELECT a.* FROM assembly_queue a WHERE a.queue = ANY (lines) ORDER BY a.queue LOOP
      room := least(most - cardinality(chosen), room_of_queue(its_queue));
      CONTINUE WHEN room <= 0;
      -- At most 1,000 that are held back by their keys are looked at.
      FOR candidate IN SELECT * FROM due_assemblies(programs, its_queue.queue, now, 0, suspect_deaths - 1, room::int + 1000) LOOP
        EXIT WHEN room <= 0;
        until := held_back_until(its_queue, candidate.seq, candidate.key, now);
        IF until IS NULL THEN
          -- At once, because it counts against the limits of the next.
          DELETE FROM assembly_due a WHERE a.seq = candidate.seq;
          INSERT INTO assembly_lease VALUES (candidate.seq, new_token, worker, candidate.deaths, its_queue.queue, candidate.key) ON CONFLICT DO NOTHING;
          chosen := chosen || candidate.seq;
          room := room - 1;
        ELSE
          -- Aside, until another of its key is given back; or later, when its rate lets it pass. So the next claim does not look at it.
          UPDATE assembly_due a SET line = CASE until WHEN 0 THEN -its_queue.queue ELSE its_queue.queue END, due_at = greatest(a.due_at, until)
            WHERE a.seq = candidate.seq;
        END IF;
      END LOOP;
    END LOOP;
  END IF;
  IF cardinality(chosen) > 0 THEN
    -- An assembly can be leased already, if somebody woke it while it was claimed: then only its row here is too much.
    WITH taken AS (
      DELETE FROM assembly_due a WHERE a.seq = ANY (chosen) RETURNING a.seq, a.deaths, a.line, a.key
    ) INSERT INTO assembly_lease SELECT t.seq, new_token, worker, t.deaths, t.line, t.key FROM taken t ON CONFLICT DO NOTHING;
    SELECT array_agg(l.seq ORDER BY c.place) INTO claimed FROM unnest(chosen) WITH ORDINALITY AS c(seq, place)
      JOIN assembly_lease l ON l.seq = c.seq AND l.token = new_token;
  END IF;

  next_due_in := greatest(0, least(
    (SELECT min(g.due_at) FROM unnest(lines) AS l(line), unnest(programs) AS u(p), LATERAL (SELECT a.due_at FROM assembly_due a
      WHERE a.program = u.p AND a.line = l.line AND a.due_at > now ORDER BY a.due_at LIMIT 1) AS g),
    -- The lease of another worker may end: then somebody must take over.
    (SELECT min(w.ends_at) FROM assembly_worker w WHERE w.worker <> worker
      AND EXISTS (SELECT FROM assembly_lease l WHERE l.worker = w.worker))) - now);
  -- A claim that is not full means that this worker will soon sleep; a full one, that no worker needs a notification.
  was_asleep := (SELECT b.asleep FROM bell b WHERE b.topic = 0);
  IF was_asleep IS NULL OR (was_asleep <> (cardinality(chosen) < most) AND NOT wants_suspect) THEN
    INSERT INTO bell VALUES (0, cardinality(chosen) < most) ON CONFLICT (topic) DO UPDATE SET asleep = excluded.asleep;
  END IF;
  RETURN NEXT;
END $$;

-- Renews the lease of a worker, and returns the revisions of its assemblies. alive in the first row says whether the lease had not ended.
CREATE FUNCTION heartbeat_of_worker(worker_name text, lease_ms double precision) RETURNS TABLE (alive boolean, id text, revision int)
LANGUAGE plpgsql ${settings} AS $$
#variable_conflict use_column
DECLARE
  me record;
BEGIN
  ${asyncCommit}
  me := renew_worker(worker_name, lease_ms, now_ms());
  RETURN QUERY SELECT me.was_alive, NULL::text, NULL::int;
  RETURN QUERY SELECT true, a.id, a.revision FROM assembly_lease l, LATERAL (
    SELECT a.id, a.revision FROM assembly a WHERE a.seq = l.seq LIMIT 1) AS a WHERE l.worker = me.worker;
END $$;

-- Gives back all assemblies of a worker that leaves.
CREATE FUNCTION release_worker(worker_name text) RETURNS int LANGUAGE plpgsql ${settings} AS $$
DECLARE
  leaving int;
BEGIN
  SELECT w.worker INTO leaving FROM assembly_worker w WHERE w.name = worker_name FOR UPDATE;
  IF leaving IS NULL THEN RETURN 0; END IF;
  -- Waits for what the worker is recording.
  PERFORM pg_advisory_xact_lock(hashtext(current_schema()), leaving);
  RETURN give_back_assemblies(leaving, 0, now_ms());
END $$;
`;
