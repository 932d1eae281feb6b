/** The reports of running processes. */
export const presence = `
-- Reports are worth nothing after a crash of the server, and are not written to its log.
CREATE UNLOGGED TABLE process (
  id text COLLATE "C" PRIMARY KEY,
  heard_at bigint NOT NULL,
  report text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Stores a report, and removes reports that are too old. If there are too many, the oldest are removed, too.
CREATE FUNCTION report_process(process_id text, new_report text, forgotten_ms bigint, most int) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  now bigint := now_ms();
BEGIN
  INSERT INTO process VALUES (process_id, now, new_report)
    ON CONFLICT (id) DO UPDATE SET heard_at = excluded.heard_at, report = excluded.report;
  DELETE FROM process WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM process WHERE heard_at <= now - forgotten_ms FOR UPDATE SKIP LOCKED));
  IF (SELECT count(*) FROM process) > most THEN
    DELETE FROM process WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM process WHERE id <> process_id ORDER BY heard_at
      LIMIT (SELECT count(*) FROM process) - most FOR UPDATE SKIP LOCKED));
  END IF;
END $$;
`;
