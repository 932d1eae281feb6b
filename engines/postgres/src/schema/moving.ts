import { indexLookupsOnly } from './function-settings.ts';

const publicationTypes = `topic_name text, ids text[], bodies text[], all_bytes bytea[], byte_texts boolean[], types text[],
  keys text[], tenants text[], all_extras text[], origins text[], seen bigint[], replays text[], delays double precision[],
  dues double precision[], patiences double precision[]`;

/**
 * Functions for events that move here from another engine. `moved` is JSON: `[attempts, snoozes,
 * next_delay_ms, last_error, story, blocking, key]`. An event for which no later event waits is published
 * without its key; the key is set afterwards.
 */
export const moving = `
CREATE FUNCTION publish_moved(${publicationTypes}, moved json[], OUT duplicates int[], OUT asleep boolean)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
BEGIN
  SELECT p.duplicates, p.asleep INTO duplicates, asleep FROM publish(topic_name, ids, bodies, all_bytes, byte_texts, types, keys,
    tenants, all_extras, origins, seen, replays, delays, dues, patiences) AS p;
  WITH kept AS (
    UPDATE event SET attempts = (given.m ->> 0)::int, snoozes = (given.m ->> 1)::int,
      next_delay_ms = (given.m ->> 2)::double precision, last_error = given.m ->> 3, story = given.m ->> 4,
      blocking = (given.m ->> 5)::boolean, key = coalesce(event.key, given.m ->> 6)
    FROM unnest(ids, moved) WITH ORDINALITY AS given(id, m, place)
    WHERE event.topic = t.topic AND event.id = given.id AND given.m IS NOT NULL
      AND given.place <> ALL (coalesce(duplicates, '{}'))
    RETURNING event.seq, event.due_at, event.attempts, event.blocking
  ), taken AS (
    DELETE FROM ready USING kept
    WHERE ready.topic = t.topic AND ready.queue = 0 AND ready.due_at = kept.due_at AND ready.seq = kept.seq
      AND (kept.attempts > 0 OR kept.blocking)
    RETURNING ready.seq
  )
  INSERT INTO ready SELECT t.topic, queue_of(false, kept.attempts), kept.due_at, kept.seq FROM kept JOIN taken USING (seq)
    WHERE NOT kept.blocking;
END $$;

-- Each event sees those before it, so they are stored one after the other.
CREATE FUNCTION publish_behind(${publicationTypes}, moved json[], OUT behind boolean[], OUT asleep boolean)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  t topic := topic_of(topic_name);
  is_behind boolean;
  is_asleep boolean;
BEGIN
  asleep := false;
  FOR i IN 1 .. coalesce(cardinality(ids), 0) LOOP
    is_behind := EXISTS (SELECT FROM event e WHERE e.topic = t.topic AND e.id = ids[i])
      OR EXISTS (SELECT FROM event e WHERE e.topic = t.topic AND e.order_key BETWEEN keys[i] AND keys[i]);
    behind[i] := is_behind;
    CONTINUE WHEN NOT is_behind;
    SELECT p.asleep INTO is_asleep FROM publish_moved(topic_name, ids[i:i], bodies[i:i], all_bytes[i:i], byte_texts[i:i], types[i:i],
      keys[i:i], tenants[i:i], all_extras[i:i], origins[i:i], seen[i:i], replays[i:i], delays[i:i], dues[i:i], patiences[i:i],
      moved[i:i]) AS p;
    asleep := asleep OR is_asleep;
  END LOOP;
END $$;
`;
