/** Functions for the controls of operators: the end of controls, and the events that a quarantine holds. */
export const controls = `
-- Deletes controls whose time is over. Like every transaction that changes controls, this one locks control_sheet first.
CREATE FUNCTION end_controls(now bigint) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  names text[];
BEGIN
  IF NOT EXISTS (SELECT FROM control WHERE until <= now) THEN RETURN; END IF;
  PERFORM 1 FROM control_sheet FOR UPDATE;
  WITH ended AS (DELETE FROM control WHERE until <= now RETURNING topic)
  SELECT array_agg(topic) INTO names FROM ended;
  IF names IS NULL THEN RETURN; END IF;
  UPDATE control_sheet SET version = version + 1;
  UPDATE topic SET releasing = true WHERE name = ANY (names);
END $$;

-- Puts at most 5,000 events back that no quarantine holds any more. Returns true when none is left.
CREATE FUNCTION release_held(t topic) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  moved int;
BEGIN
  WITH free AS (
    SELECT r.ctid FROM ready r WHERE r.topic = t.topic AND r.queue >= 10 AND NOT EXISTS (
      SELECT FROM event e, control c WHERE e.seq = r.seq AND c.topic = t.name AND c.kind = 'quarantine'
        AND (c.tenant = e.tenant OR c.key = e.key))
    LIMIT 5000 FOR UPDATE SKIP LOCKED
  ), back AS (
    UPDATE ready SET queue = queue - 10 WHERE ctid = ANY (ARRAY(SELECT ctid FROM free)) RETURNING 1
  ) SELECT count(*) INTO moved FROM back;
  IF moved > 0 THEN RETURN false; END IF;
  UPDATE topic SET releasing = false WHERE topic = t.topic;
  RETURN true;
END $$;

-- Returns true if a quarantine holds an event of this tenant and this key.
CREATE FUNCTION is_held(t topic, of_tenant text, of_key text) RETURNS boolean LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT EXISTS (SELECT FROM control c WHERE c.topic = t.name AND c.kind = 'quarantine' AND coalesce(c.until > now_ms(), true)
    AND (c.tenant = of_tenant OR c.key = of_key))
$$;
`;
