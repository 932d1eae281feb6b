import { indexLookupsOnly } from './function-settings.ts';

/** The function that claims idempotency keys. */
export const keys = `
-- Returns one row for each claim: the result, the token or the ms to wait, the attempt, and the record.
CREATE FUNCTION begin_keys(scopes text[], wanted text[], fingerprints text[], lease_ms double precision[], take_over boolean[],
  keep_ms double precision[], live_max double precision[])
RETURNS TABLE (place int, kind text, token bigint, attempt int, record text, record_bytes bytea)
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  now bigint;
  c record;
  entry ledger_key;
  fresh bigint;
  is_new boolean;
BEGIN
  -- In the order of keys, so that two batches never wait for each other. Claims of one key, and claims that share a limit, depend on
  -- each other: they keep the order of the batch.
  FOR c IN SELECT *, bool_or(live IS NOT NULL) OVER (PARTITION BY scope) AS is_limited
    FROM unnest(scopes, wanted, fingerprints, lease_ms, take_over, keep_ms, live_max) WITH ORDINALITY
      AS g(scope, key, fingerprint, lease, takes_over, keep, live, place)
    ORDER BY scope COLLATE "C", CASE WHEN NOT bool_or(live IS NOT NULL) OVER (PARTITION BY scope) THEN key END COLLATE "C", place
  LOOP
    place := c.place; kind := NULL; token := NULL; attempt := NULL; record := NULL; record_bytes := NULL;
    IF c.is_limited THEN
      -- The count must not change before the insert.
      PERFORM pg_advisory_xact_lock(hashtextextended(c.scope, 7261));
    END IF;
    LOOP
      SELECT * INTO entry FROM ledger_key k WHERE k.scope = c.scope AND k.key = c.key FOR UPDATE;
      is_new := NOT FOUND;
      now := now_ms();
      IF NOT is_new AND entry.removed_at <= now THEN
        DELETE FROM ledger_key k WHERE k.scope = c.scope AND k.key = c.key;
        is_new := true;
      END IF;
      IF is_new AND c.live IS NOT NULL AND (SELECT count(*) FROM ledger_key k
        WHERE k.scope = c.scope AND k.removed_at > now) >= c.live THEN
        kind := 'full';
        EXIT;
      END IF;
      IF is_new THEN
        token := new_token('ledger_token');
        attempt := 1;
        INSERT INTO ledger_key VALUES (c.scope, c.key, c.fingerprint, token, now + ceil(c.lease)::bigint, 1, false, NULL, NULL,
          now + ceil(greatest(c.keep, c.lease))::bigint) ON CONFLICT DO NOTHING;
        -- Another transaction inserted the key first: read it again.
        CONTINUE WHEN NOT FOUND;
        kind := 'acquired';
      ELSIF entry.fingerprint <> c.fingerprint THEN
        kind := 'mismatch';
      ELSIF entry.done THEN
        kind := 'done';
        record := entry.record;
        record_bytes := entry.record_bytes;
      ELSIF entry.lease_ends_at > now THEN
        kind := 'running';
        token := entry.lease_ends_at - now;
      ELSIF NOT c.takes_over THEN
        kind := 'unknown';
      ELSE
        kind := 'acquired';
        fresh := new_token('ledger_token');
        token := fresh;
        attempt := entry.attempt + 1;
        UPDATE ledger_key k SET token = fresh, attempt = k.attempt + 1, lease_ends_at = now + ceil(c.lease)::bigint,
          removed_at = now + ceil(greatest(c.keep, c.lease))::bigint WHERE k.scope = c.scope AND k.key = c.key;
      END IF;
      EXIT;
    END LOOP;
    RETURN NEXT;
  END LOOP;
END $$;
`;
