import { indexLookupsOnly } from './function-settings.ts';

/** The acts of an operator on waiting events. Both functions return the ids of the events that were changed. */
export const actsOnWaiting = `
-- Makes delayed events due.
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

-- Deletes the events that are parked and block their keys, so that the next events of these keys can run. They stay in the table parked.
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
`;
