import { asyncCommit, indexLookupsOnly } from './function-settings.ts';
import { parkAgain } from './park-again.ts';

/**
 * Functions that settle events of one topic. Leases are three arrays: tokens of groups, sizes of groups, and
 * numbers of all events. Results have the order of the third array.
 */
export const settling = `
-- Fences the leases: returns which of them are valid. The events are removed from their lease groups, unless keeps is true. If is_locked is
-- true, this transaction has locked the groups before, so they are still valid, whatever the time.
CREATE FUNCTION fence(t int, tokens bigint[], counts int[], given_seqs bigint[], keeps boolean, is_locked boolean) RETURNS boolean[]
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_variable
DECLARE
  now bigint;
  at int := 1;
  given bigint[];
  good bigint[];
  mine bigint[];
  rest bigint[];
  h record;
  flags boolean[] := '{}';
BEGIN
  PERFORM 1 FROM lease_group WHERE lease_group.token = ANY (tokens) ORDER BY lease_group.token, lease_group.part FOR UPDATE;
  now := now_ms();
  FOR i IN 1..cardinality(tokens) LOOP
    given := given_seqs[at : at + counts[i] - 1];
    at := at + counts[i];
    good := '{}';
    FOR h IN SELECT lease_group.part, lease_group.topic, lease_group.ends_at, lease_group.seqs FROM lease_group WHERE lease_group.token = tokens[i] LOOP
      CONTINUE WHEN h.topic <> t OR NOT (is_locked OR h.ends_at > now);
      IF h.seqs = given THEN
        good := given;
        rest := '{}';
      ELSE
        mine := ARRAY(SELECT s FROM unnest(given) AS u(s) WHERE s = ANY (h.seqs));
        CONTINUE WHEN cardinality(mine) = 0;
        good := good || mine;
        rest := ARRAY(SELECT s FROM unnest(h.seqs) AS u(s) WHERE s <> ALL (given));
      END IF;
      CONTINUE WHEN keeps;
      IF cardinality(rest) = 0 THEN
        DELETE FROM lease_group WHERE lease_group.token = tokens[i] AND lease_group.part = h.part;
      ELSE
        UPDATE lease_group SET seqs = rest WHERE lease_group.token = tokens[i] AND lease_group.part = h.part;
      END IF;
    END LOOP;
    flags := flags || CASE WHEN good = given THEN array_fill(true, ARRAY[counts[i]])
      ELSE ARRAY(SELECT s = ANY (good) FROM unnest(given) WITH ORDINALITY AS u(s, place) ORDER BY place) END;
  END LOOP;
  RETURN flags;
END $$;

-- Extends leases. Events of a group that are not named keep their end, in a part of their own.
CREATE FUNCTION extend(topic_name text, tokens bigint[], counts int[], given_seqs bigint[], lease_ms double precision) RETURNS boolean[]
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_variable
DECLARE
  t int := (topic_of(topic_name)).topic;
  flags boolean[] := fence(t, tokens, counts, given_seqs, true, false);
  named bigint[];
  at int := 1;
  now bigint := now_ms();
  h record;
BEGIN
  ${asyncCommit}
  FOR i IN 1..cardinality(tokens) LOOP
    named := given_seqs[at : at + counts[i] - 1];
    at := at + counts[i];
    FOR h IN SELECT * FROM lease_group WHERE lease_group.token = tokens[i] LOOP
      CONTINUE WHEN h.topic <> t OR h.ends_at <= now OR NOT h.seqs && named;
      IF NOT h.seqs <@ named THEN
        INSERT INTO lease_group (token, part, topic, owner, ends_at, has_followers, seqs)
          SELECT h.token, (SELECT max(lease_group.part) + 1 FROM lease_group WHERE lease_group.token = h.token), h.topic, h.owner, h.ends_at, h.has_followers,
            ARRAY(SELECT s FROM unnest(h.seqs) AS u(s) WHERE s <> ALL (named));
      END IF;
      UPDATE lease_group SET ends_at = now + ceil(lease_ms)::bigint,
        seqs = ARRAY(SELECT s FROM unnest(h.seqs) AS u(s) WHERE s = ANY (named))
        WHERE lease_group.token = h.token AND lease_group.part = h.part;
    END LOOP;
  END LOOP;
  RETURN flags;
END $$;

-- Counts replays that succeeded, and resolves their events. If the outcome comes before the release is recorded, it counts as both.
CREATE FUNCTION resolve(ids text[], operations text[]) RETURNS text[]
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  resolved_ids text[];
BEGIN
  PERFORM 1 FROM parked WHERE id = ANY (ids) ORDER BY id FOR UPDATE;
  WITH news AS (
    SELECT DISTINCT p.id, p.operation, p.status FROM unnest(ids, operations) AS given(id, operation)
    JOIN parked p ON p.id = given.id AND p.operation = given.operation
  ), counted AS (
    UPDATE operation r SET succeeded = succeeded + n.heard, released = released + n.unnoted
    FROM (SELECT operation, count(*) AS heard, count(*) FILTER (WHERE status <> 'replaying') AS unnoted
      FROM news GROUP BY operation) AS n WHERE r.id = n.operation
  ), resolved AS (
    UPDATE parked SET status = 'resolved', operation = NULL, replayed_by = news.operation, changed_by = NULL,
      removed_at_before = NULL FROM news WHERE parked.id = news.id RETURNING parked.id
  ) SELECT array_agg(id) INTO resolved_ids FROM resolved;
  RETURN coalesce(resolved_ids, '{}');
END $$;

-- Counts replays that failed again, before their events are parked again.
CREATE FUNCTION count_failed_again(ids text[], replays text[]) RETURNS void
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM parked WHERE id = ANY (ids) ORDER BY id FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE operation r SET failed_again = failed_again + n.heard, released = released + n.unnoted
  FROM (SELECT p.operation, count(*) AS heard, count(*) FILTER (WHERE p.status <> 'replaying') AS unnoted
    FROM (SELECT DISTINCT * FROM unnest(ids, replays) AS g(id, replay)) AS given
    JOIN parked p ON p.id = given.id AND p.operation = given.replay
    GROUP BY p.operation) AS n WHERE r.id = n.operation;
END $$;

-- Writes marks. A mark hardly ever exists already, and looking for it first costs as much as writing it.
CREATE FUNCTION write_marks(ids text[], handlers text[], now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mark SELECT id, handler, now FROM unnest(handlers) AS h(handler), unnest(ids) AS i(id);
EXCEPTION WHEN unique_violation THEN
  INSERT INTO mark SELECT id, handler, now FROM unnest(handlers) AS h(handler), unnest(ids) AS i(id) ON CONFLICT DO NOTHING;
END $$;

-- Removes events that are acknowledged or discarded, and keeps them in the table settled if the topic wants that.
CREATE FUNCTION finish(t topic, done bigint[], how text, handlers text[], now bigint) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ids text[];
  replayed text[];
  operations text[];
BEGIN
  IF t.keep_settled_ms > 0 THEN
    INSERT INTO settled SELECT topic, seq, how, now, now + t.keep_settled_ms, first_seen_at, expires_at, bytes_are_text, id, type,
      key, tenant, origin, replay, body, bytes, extras
      FROM event WHERE seq = ANY (done);
  END IF;
  WITH gone AS (DELETE FROM event WHERE seq = ANY (done) RETURNING id, replay)
  SELECT array_agg(id), array_agg(id) FILTER (WHERE replay IS NOT NULL), array_agg(replay) FILTER (WHERE replay IS NOT NULL)
    INTO ids, replayed, operations FROM gone;
  IF handlers IS NOT NULL THEN PERFORM write_marks(ids, handlers, now); END IF;
  IF replayed IS NOT NULL THEN PERFORM resolve(replayed, operations); END IF;
END $$;

-- Acknowledges all of the events. This is the most frequent settlement, and the fastest.
CREATE FUNCTION ack(topic_name text, tokens bigint[], counts int[], given_seqs bigint[], handlers text[], is_locked boolean,
  OUT took boolean[], OUT asleep boolean) LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  done bigint[] := given_seqs;
  names text[];
BEGIN
  took := fence(t.topic, tokens, counts, given_seqs, false, is_locked);
  IF false = ANY (took) THEN
    done := ARRAY(SELECT seq FROM unnest(given_seqs, took) AS g(seq, good) WHERE good);
  END IF;
  IF t.ordering = 'key' THEN
    names := ARRAY(
      SELECT DISTINCT e.order_key FROM unnest(done) AS d(seq), LATERAL (SELECT order_key FROM event WHERE event.seq = d.seq LIMIT 1) AS e
      WHERE e.order_key IS NOT NULL);
  END IF;
  PERFORM finish(t, done, 'ack', handlers, now_ms());
  asleep := false;
  IF cardinality(names) > 0 THEN
    PERFORM advance_keys(t.topic, keys_without_lease(t.topic, names, tokens));
    asleep := coalesce((SELECT b.asleep FROM bell b WHERE b.topic = t.topic), false);
  END IF;
END $$;

-- Settles events in any mixture of ways. keep_parked_ms holds for each event that has no value in keeps.
CREATE FUNCTION settle(topic_name text, tokens bigint[], counts int[], given_seqs bigint[], is_locked boolean, kinds text[],
  delays double precision[], errors text[], stories text[], holds boolean[], targets text[], stops text[], keeps double precision[],
  mark_places int[], mark_handlers text[], keep_parked_ms double precision, consumers text[] DEFAULT NULL, OUT took boolean[], OUT asleep boolean)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  now bigint;
  names text[];
  target text;
  to_topic topic;
  made text[];
  moving bigint[];
  how text;
  parking bigint[];
BEGIN
  took := fence(t.topic, tokens, counts, given_seqs, false, is_locked);
  now := now_ms();
  IF cardinality(mark_places) > 0 THEN
    INSERT INTO mark SELECT e.id, m.handler, now
      FROM unnest(mark_places, mark_handlers) AS m(place, handler) JOIN event e ON e.seq = given_seqs[m.place]
      WHERE took[m.place] ON CONFLICT DO NOTHING;
  END IF;
  IF false = ANY (took) THEN
    -- What is lost goes no further: the same event may be here under the lease that came after.
    SELECT array_agg(seq ORDER BY place), array_agg(kind ORDER BY place), array_agg(delay ORDER BY place),
        array_agg(error ORDER BY place), array_agg(story ORDER BY place), array_agg(hold ORDER BY place),
        array_agg(target ORDER BY place), array_agg(stop ORDER BY place), array_agg(keep ORDER BY place),
        array_agg(consumer ORDER BY place)
      INTO given_seqs, kinds, delays, errors, stories, holds, targets, stops, keeps, consumers
      FROM unnest(given_seqs, took, kinds, delays, errors, stories, holds, targets, stops, keeps, consumers) WITH ORDINALITY
        AS g(seq, good, kind, delay, error, story, hold, target, stop, keep, consumer, place) WHERE good;
  END IF;
  IF t.ordering = 'key' THEN
    names := ARRAY(
      SELECT DISTINCT e.order_key FROM unnest(given_seqs) AS g(seq), LATERAL (SELECT order_key FROM event WHERE event.seq = g.seq LIMIT 1) AS e
      WHERE e.order_key IS NOT NULL);
  END IF;

  FOREACH how IN ARRAY ARRAY['ack', 'discard'] LOOP
    CONTINUE WHEN how <> ALL (kinds);
    PERFORM finish(t, ARRAY(SELECT seq FROM unnest(given_seqs, kinds) AS g(seq, kind) WHERE kind = how), how, NULL, now);
  END LOOP;

  IF kinds && ARRAY['retry', 'snooze', 'return'] THEN
    -- Again: after a failure, a snooze, or as if it had never been leased.
    WITH back AS (
      UPDATE event e SET
        attempts = attempts + (kind = 'retry')::int,
        snoozes = snoozes + (kind = 'snooze')::int,
        due_at = CASE kind WHEN 'return' THEN due_at ELSE now + ceil(delay)::bigint END,
        next_delay_ms = CASE kind WHEN 'return' THEN next_delay_ms ELSE delay END,
        last_error = CASE kind WHEN 'retry' THEN error ELSE last_error END,
        story = CASE kind WHEN 'retry' THEN g.story ELSE e.story END,
        order_key = CASE WHEN kind = 'retry' AND NOT hold THEN NULL ELSE order_key END,
        suspect = suspect AND kind = 'return',
        deaths = CASE kind WHEN 'return' THEN deaths ELSE 0 END
      FROM unnest(given_seqs, kinds, delays, errors, stories, holds) AS g(seq, kind, delay, error, story, hold)
      WHERE e.seq = g.seq AND kind IN ('retry', 'snooze', 'return')
      RETURNING e.seq, e.due_at, e.suspect, e.attempts, e.order_key
    )
    INSERT INTO ready SELECT t.topic, queue_of(suspect, attempts), due_at, seq FROM back WHERE order_key IS NULL;
  END IF;

  IF 'park' = ANY (kinds) THEN
    parking := ARRAY(SELECT seq FROM unnest(given_seqs, kinds) AS g(seq, kind) WHERE kind = 'park');
    PERFORM count_failed_again(array_agg(id), array_agg(replay)) FROM event WHERE seq = ANY (parking) HAVING count(*) > 0;
    INSERT INTO parked (id, status, parked_at, parkings, removed_at, topic, first_seen_at, expires_at, bytes_are_text, type, key, tenant,
      origin, replay, body, bytes, extras, reason, message, stop, final_attempt, consumer, fingerprint, error, story)
    SELECT e.id, 'parked', now, 1, now + ceil(coalesce(keep, keep_parked_ms))::bigint, t.name, e.first_seen_at, e.expires_at,
      e.bytes_are_text, e.type, e.key, e.tenant, coalesce(e.origin, t.name), e.replay, e.body, e.bytes, e.extras,
      coalesce(note.type, stop), left(coalesce(note.message, ''), 512), stop, e.attempts + 1, consumer,
      coalesce(note.fingerprint, stop), error, g.story
    FROM unnest(given_seqs, kinds, errors, stories, stops, keeps, consumers)
      AS g(seq, kind, error, story, stop, keep, consumer)
    JOIN event e ON e.seq = g.seq
    LEFT JOIN LATERAL json_to_record(error::json) AS note(type text, message text, fingerprint text) ON true
    WHERE kind = 'park'
    ${parkAgain};
    IF t.ordering = 'key' THEN
      UPDATE event e SET blocking = true, suspect = false, deaths = 0 FROM unnest(given_seqs, kinds, holds) AS g(seq, kind, hold)
        WHERE kind = 'park' AND hold AND e.seq = g.seq AND e.order_key IS NOT NULL;
    END IF;
    DELETE FROM event WHERE seq = ANY (parking) AND NOT blocking;
  END IF;

  FOR target IN SELECT DISTINCT g.target FROM unnest(kinds, targets) AS g(kind, target) WHERE kind = 'reroute' LOOP
    to_topic := topic_of(target);
    moving := ARRAY(SELECT g.seq FROM unnest(given_seqs, kinds, targets) AS g(seq, kind, target_name)
      WHERE kind = 'reroute' AND target_name = target);
    made := '{}';
    IF to_topic.ordering = 'key' THEN
      made := lock_keys(to_topic.topic, ARRAY(
        SELECT key FROM event WHERE seq = ANY (moving) AND key IS NOT NULL));
    END IF;
    WITH gone AS (
      DELETE FROM event WHERE seq = ANY (moving) RETURNING *
    ), put AS (
      INSERT INTO event (topic, id, first_seen_at, due_at, expires_at, body, bytes, bytes_are_text, type, key, tenant, order_key, extras,
        origin, replay, last_error, story)
      SELECT to_topic.topic, id, first_seen_at, now, expires_at, body, bytes, bytes_are_text, type, key, tenant,
        CASE WHEN to_topic.ordering = 'key' THEN key END, extras, coalesce(origin, t.name), replay, last_error, story
      FROM gone ORDER BY seq ON CONFLICT (topic, id) DO NOTHING
      RETURNING seq, due_at, order_key
    )
    INSERT INTO ready SELECT to_topic.topic, 0, due_at, seq FROM put WHERE order_key IS NULL;
    IF cardinality(made) > 0 THEN PERFORM advance_keys(to_topic.topic, made); END IF;
  END LOOP;

  IF cardinality(names) > 0 THEN PERFORM advance_keys(t.topic, keys_without_lease(t.topic, names, tokens)); END IF;
  asleep := coalesce((SELECT b.asleep FROM bell b WHERE b.topic = t.topic), false);
END $$;
`;
