import { indexLookupsOnly } from './function-settings.ts';

/** The function that takes from rate limits by the GCRA. */
export const rateLimits = `
-- The limits of one request allow it together or not at all. requests has the number of the request to which each take belongs, ascending
-- from 1.
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
