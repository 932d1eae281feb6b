const settings = `SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off`;

/** Functions that change assemblies from outside, such as signals. Each locks the assembly and increases its revision. */
export const journalChanging = `
-- Assemblies are locked in the order of their numbers, so that two batches never wait for each other.
CREATE FUNCTION signal_assemblies(targets text[], ids text[], names text[], payloads text[], bytes bytea[]) RETURNS text[]
LANGUAGE plpgsql ${settings} AS $$
DECLARE
  now bigint := now_ms();
BEGIN
  PERFORM 1 FROM assembly a WHERE a.id = ANY (targets) ORDER BY a.seq FOR NO KEY UPDATE;
  RETURN ARRAY(SELECT signal_assembly(g.target, g.id, g.name, g.body, g.bytes, now)
    FROM unnest(targets, ids, names, payloads, bytes) AS g(target, id, name, body, bytes));
END $$;

-- Opens an assembly again that is parked or has ended.
CREATE FUNCTION reopen_assembly(a assembly) RETURNS void LANGUAGE sql ${settings} AS $$
  DELETE FROM assembly_parked WHERE seq = a.seq;
  UPDATE assembly SET state = 0, parked = NULL, ended_at = NULL, removed_at = NULL WHERE seq = a.seq;
$$;

-- Asks assemblies to stop.
CREATE FUNCTION stop_assemblies(ids text[], notes text[]) RETURNS text[] LANGUAGE plpgsql ${settings} AS $$
DECLARE
  now bigint := now_ms();
  a assembly;
  n record;
  results text[] := '{}';
BEGIN
  PERFORM 1 FROM assembly WHERE id = ANY (ids) ORDER BY seq FOR NO KEY UPDATE;
  FOR n IN SELECT * FROM unnest(ids, notes) AS g(id, note) LOOP
    SELECT * INTO a FROM assembly WHERE id = n.id;
    IF NOT FOUND THEN results := results || 'unknown'::text;
    ELSIF a.stop IS NOT NULL THEN results := results || 'already'::text;
    ELSIF a.is_committed THEN results := results || 'committed'::text;
    ELSE
      UPDATE assembly SET stop = n.note, revision = revision + 1 WHERE seq = a.seq;
      -- A claim may be taking a parked one at this moment: wait for it, and look then.
      PERFORM 1 FROM assembly_due WHERE seq = a.seq FOR UPDATE;
      IF NOT EXISTS (SELECT FROM assembly_lease l WHERE l.seq = a.seq) THEN
        IF a.state > 0 THEN PERFORM reopen_assembly(a); END IF;
        PERFORM make_assembly_due(a, now);
      END IF;
      results := results || 'requested'::text;
    END IF;
  END LOOP;
  RETURN results;
END $$;

-- Sets when the patience of an assembly ends. Returns false if the assembly has ended or is unknown.
CREATE FUNCTION set_assembly_patience(of_id text, patience_ms double precision) RETURNS boolean LANGUAGE plpgsql ${settings} AS $$
DECLARE
  now bigint := now_ms();
  expires bigint := now + ceil(patience_ms)::bigint;
  a assembly;
BEGIN
  SELECT * INTO a FROM assembly WHERE id = of_id FOR NO KEY UPDATE;
  IF NOT FOUND OR a.state >= 2 THEN RETURN false; END IF;
  UPDATE assembly SET expires_at = expires, revision = revision + 1 WHERE seq = a.seq;
  IF a.state = 0 THEN
    PERFORM make_assembly_due(a, now);
    RETURN true;
  END IF;
  -- A parked one is due when the new patience ends.
  DELETE FROM assembly_due WHERE seq = a.seq;
  IF expires IS NOT NULL THEN PERFORM make_assembly_due(a, expires); END IF;
  RETURN true;
END $$;
`;
