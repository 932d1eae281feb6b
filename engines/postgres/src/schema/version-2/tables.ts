/** Tables for operations on parked events, the audit log, and reports of processes. */
export const tables = `
-- Operations. A change walks over the events in the order of parked_at and id; position_at and position_id are the last event it has seen.
ALTER TABLE replay RENAME TO operation;
ALTER TABLE operation
  ADD COLUMN kind text NOT NULL DEFAULT 'replay',
  -- of an undo: the operation that it undoes
  ADD COLUMN undo_of text COLLATE "C" UNIQUE,
  -- the audit entry that the act undoes
  ADD COLUMN undoes text,
  ADD COLUMN changed int NOT NULL DEFAULT 0,
  ADD COLUMN position_at bigint,
  ADD COLUMN position_id text COLLATE "C";
ALTER TABLE operation ALTER COLUMN kind DROP DEFAULT;
UPDATE operation SET request = ('{"kind":"replay",' || substr(request::text, 2))::json;
CREATE INDEX operation_kind ON operation (kind, number);
CREATE INDEX operation_unfinished ON operation (number) WHERE ended_at IS NULL;

ALTER TABLE parked
  ADD COLUMN consumer text COLLATE "C",
  ADD COLUMN replayed_by text COLLATE "C",
  ADD COLUMN version int NOT NULL DEFAULT 1,
  -- JSON of the parkings before this one: the first and the latest three
  ADD COLUMN earlier text[] NOT NULL DEFAULT '{}',
  -- the discard, restore, keep or undo that changed it last, and removed_at before that
  ADD COLUMN changed_by text COLLATE "C",
  ADD COLUMN removed_at_before bigint;
UPDATE parked SET discarded = '{"at":' || parked_at || ',' || substr(discarded, 2) WHERE discarded IS NOT NULL;
CREATE INDEX parked_replayed ON parked (replayed_by, parked_at) WHERE replayed_by IS NOT NULL;
CREATE INDEX parked_changed ON parked (changed_by, parked_at, id) WHERE changed_by IS NOT NULL;
-- A replay remembers its position, so it needs no index of the events that it has not selected yet.
DROP INDEX parked_free;
-- With the topic, so that the events of a group in one topic are found without reading the others.
DROP INDEX parked_fingerprint;
CREATE INDEX parked_fingerprint ON parked (status, fingerprint, parked_at, topic);

ALTER TABLE audit
  ALTER COLUMN count TYPE bigint,
  ALTER COLUMN id SET DATA TYPE text COLLATE "C",
  ADD COLUMN undoes text,
  ADD COLUMN undone_by text,
  -- JSON
  ADD COLUMN before text;
UPDATE audit SET
  what = CASE what WHEN 'replay_stopped' THEN 'operation_stopped' ELSE what END,
  subjects = ARRAY(SELECT CASE WHEN what IN ('replay', 'replay_stopped') THEN 'operation:' WHEN what IN ('rule_set', 'rule_removed')
    THEN 'rule:' ELSE 'event:' END || name FROM unnest(subjects) WITH ORDINALITY AS s(name, place) ORDER BY place);
CREATE UNIQUE INDEX audit_id ON audit (id);
CREATE INDEX audit_who ON audit (who, number);
CREATE INDEX audit_what ON audit (what, number);
CREATE INDEX audit_at ON audit (at);
-- So that the entries of a subject are found in their order.
CREATE TABLE audit_subject (
  subject text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (subject, number)
);
INSERT INTO audit_subject SELECT DISTINCT subject, number FROM audit, unnest(subjects) AS s(subject);

ALTER TABLE control
  -- null: the control of a policy
  ALTER COLUMN topic DROP NOT NULL,
  -- of the controls, when this one was imposed
  ADD COLUMN version bigint NOT NULL DEFAULT 0,
  ADD COLUMN undoes text;
UPDATE control SET version = (SELECT version FROM control_sheet);

-- Reports are worth nothing after a crash of the server, and are not written to its log.
CREATE UNLOGGED TABLE process (
  id text COLLATE "C" PRIMARY KEY,
  heard_at bigint NOT NULL,
  report text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
`;
