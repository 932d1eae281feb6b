import { indexLookupsOnly } from '../function-settings.ts';

export const keys = `
-- One row for each claim: the result, the token or the ms to wait, the attempt, the record.
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

-- GCRA rate limits; the limits of one request allow it together or not at all. requests: the number of the request that each take belongs to, ascending from 1.
CREATE FUNCTION take(requests int[], wanted text[], rates double precision[], bursts double precision[], costs double precision[])
RETURNS TABLE (allowed boolean, wait_ms double precision, tokens double precision[], full_in_ms double precision[])
LANGUAGE plpgsql ${indexLookupsOnly} AS $$
#variable_conflict use_column
DECLARE
  now double precision;
  c record;
BEGIN
  INSERT INTO rate_limit SELECT DISTINCT k COLLATE "C", 0::double precision FROM unnest(wanted) AS u(k) ORDER BY 1 ON CONFLICT DO NOTHING;
  PERFORM 1 FROM rate_limit WHERE key = ANY (wanted) ORDER BY key FOR UPDATE;
  now := extract(epoch FROM clock_timestamp()) * 1000;
  FOR r IN 1..coalesce(requests[cardinality(requests)], 0) LOOP
    wait_ms := 0;
    FOR c IN SELECT g.*, k.tat FROM unnest(requests, wanted, rates, bursts, costs) AS g(request, key, rate, burst, cost)
      JOIN rate_limit k ON k.key = g.key WHERE g.request = r
    LOOP
      IF c.cost > c.burst THEN
        wait_ms := 'Infinity';
      ELSIF (greatest(c.tat, now) - now - (c.burst - c.cost) / c.rate) * c.rate >= 0.001 THEN
        -- 0.001 of an interval is ignored: sums of fractions drift.
        wait_ms := greatest(wait_ms, greatest(c.tat, now) - now - (c.burst - c.cost) / c.rate);
      END IF;
    END LOOP;
    allowed := wait_ms = 0;
    tokens := '{}';
    full_in_ms := '{}';
    FOR c IN SELECT * FROM unnest(requests, wanted, rates, bursts, costs) WITH ORDINALITY AS g(request, key, rate, burst, cost, place)
      WHERE g.request = r ORDER BY place
    LOOP
      IF allowed AND c.cost > 0 THEN
        UPDATE rate_limit SET tat = greatest(tat, now) + c.cost / c.rate WHERE key = c.key;
      END IF;
      full_in_ms := full_in_ms || greatest(0, (SELECT tat FROM rate_limit WHERE key = c.key) - now);
      tokens := tokens || greatest(0, c.burst - full_in_ms[cardinality(full_in_ms)] * c.rate);
    END LOOP;
    RETURN NEXT;
  END LOOP;
END $$;
`;
