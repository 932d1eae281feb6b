import type { DatabaseSync } from 'node:sqlite';
import { journalSchema } from './journal-schema.ts';
import { SqliteError } from './sqlite-errors.ts';

/**
 * The SQL of each schema version. Never change a released version; add a new one at the end. Names start with
 * `holdfast_`, because the file may have tables of the application.
 */
export const schemaSteps: readonly string[] = [
  `
  CREATE TABLE holdfast_room (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL,                -- the last number given to an event or a lease
    controls_version INTEGER NOT NULL,
    controls_end_at INTEGER,              -- when the next control ends by itself
    is_releasing INTEGER NOT NULL         -- 1: events of a lifted quarantine are still to be put back
  ) STRICT;
  INSERT INTO holdfast_room VALUES (1, 0, 1, NULL, 0);

  CREATE TABLE holdfast_topic (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    ordering TEXT NOT NULL,
    keep_settled_ms REAL NOT NULL
  ) STRICT;

  -- Events that are not settled. A sequence starts with the topic, so those of one topic lie together, in their order.
  CREATE TABLE holdfast_event (
    seq INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    id TEXT NOT NULL,
    payload ANY NOT NULL,
    type TEXT,
    key TEXT,
    tenant TEXT,
    rest TEXT,                            -- fields that few events have, as JSON: fewer columns are faster to read and write
    first_seen_at INTEGER NOT NULL,
    lane TEXT,                            -- the key whose order it holds
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,    -- above 0: a suspect
    next_delay_ms REAL,
    fence INTEGER NOT NULL DEFAULT 0,     -- leases up to this number are no longer valid for it
    kept_until INTEGER,                   -- its own end of the lease, if a heartbeat has extended it
    hand INTEGER,                         -- the lease of a follower whose head is back in the ready queue
    blocking INTEGER NOT NULL DEFAULT 0,  -- 1: parked, and blocks its key
    last_error TEXT,
    story TEXT
  ) STRICT;
  CREATE UNIQUE INDEX holdfast_event_id ON holdfast_event (id, topic);
  CREATE INDEX holdfast_event_lane ON holdfast_event (topic, lane) WHERE lane IS NOT NULL;
  CREATE INDEX holdfast_event_blocking ON holdfast_event (topic) WHERE blocking = 1;

  -- The ready queue: events that can be leased, now or when they are due. 0 first tries, 1 retries, 2 suspects. Leased events
  -- and followers are not in it.
  CREATE TABLE holdfast_line (
    topic INTEGER NOT NULL,
    line INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (topic, line, due_at, seq)
  ) STRICT, WITHOUT ROWID;

  -- Events under quarantine that a lease has found and taken out of the ready queue.
  CREATE TABLE holdfast_held (
    control TEXT NOT NULL,
    seq INTEGER NOT NULL,
    topic INTEGER NOT NULL,
    PRIMARY KEY (control, seq)
  ) STRICT, WITHOUT ROWID;

  -- One row for all events that were leased together.
  CREATE TABLE holdfast_lease (
    n INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    owner TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    look_at INTEGER NOT NULL,             -- when its first event may expire
    in_hand INTEGER NOT NULL,             -- the number of its events that are not settled
    has_kept INTEGER NOT NULL DEFAULT 0,  -- 1: some events have a kept_until
    has_runs INTEGER NOT NULL,            -- 1: some events are followers
    seqs TEXT NOT NULL                    -- its events, run-length encoded
  ) STRICT;

  CREATE TABLE holdfast_settled (
    seq INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    id TEXT NOT NULL,
    payload ANY NOT NULL,
    type TEXT,
    key TEXT,
    tenant TEXT,
    rest TEXT,
    first_seen_at INTEGER NOT NULL,
    how TEXT NOT NULL,
    settled_at INTEGER NOT NULL,
    removed_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX holdfast_settled_removed ON holdfast_settled (removed_at);

  CREATE TABLE holdfast_control (
    id TEXT PRIMARY KEY,
    control TEXT NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE holdfast_key (
    number INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    token TEXT NOT NULL,
    lease_ends_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    done INTEGER NOT NULL,
    record ANY,
    removed_at INTEGER NOT NULL,
    UNIQUE (scope, key)
  ) STRICT;
  CREATE INDEX holdfast_key_removed ON holdfast_key (removed_at);
  CREATE TABLE holdfast_scope (name TEXT PRIMARY KEY, keys INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE holdfast_handler (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  -- Time-ordered ids: new marks are at the end, and marks that expire together are neighbours.
  CREATE TABLE holdfast_mark (
    handler INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (handler, event_id)
  ) STRICT, WITHOUT ROWID;
  -- Marks whose ids begin with prefix, about three days of them, and when they expire.
  CREATE TABLE holdfast_mark_bucket (
    handler INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (handler, prefix)
  ) STRICT, WITHOUT ROWID;
  -- Marks of events whose ids are not time-ordered.
  CREATE TABLE holdfast_odd_mark (
    handler INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (handler, event_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX holdfast_odd_mark_removed ON holdfast_odd_mark (removed_at);

  CREATE TABLE holdfast_parked (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    operation TEXT,
    parked_at INTEGER NOT NULL,
    removed_at INTEGER NOT NULL,
    parkings INTEGER NOT NULL,
    topic TEXT NOT NULL,
    type TEXT,
    key TEXT,
    tenant TEXT,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    stop TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    final_attempt INTEGER NOT NULL,
    is_edited INTEGER NOT NULL,
    headers TEXT,
    correlation_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    origin_topic TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    expires_at INTEGER,
    replay TEXT,
    error TEXT,
    story TEXT NOT NULL,
    edits TEXT NOT NULL,
    discarded TEXT,
    original_headers TEXT,
    original_payload ANY,
    payload ANY NOT NULL
  ) STRICT;
  CREATE INDEX holdfast_parked_list ON holdfast_parked (status, parked_at, id);
  CREATE INDEX holdfast_parked_group ON holdfast_parked (status, fingerprint, parked_at, id);
  CREATE INDEX holdfast_parked_operation ON holdfast_parked (operation, status, parked_at) WHERE operation IS NOT NULL;
  CREATE INDEX holdfast_parked_removed ON holdfast_parked (removed_at) WHERE operation IS NULL;

  CREATE TABLE holdfast_operation (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    stage TEXT NOT NULL,
    version INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    stopped TEXT,
    selected INTEGER NOT NULL DEFAULT 0,
    released INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed_again INTEGER NOT NULL DEFAULT 0,
    memo TEXT NOT NULL,
    selected_to TEXT                      -- the last place that the selection has read
  ) STRICT;

  CREATE TABLE holdfast_rule (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rule TEXT NOT NULL) STRICT;

  CREATE TABLE holdfast_audit (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    what TEXT NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    subjects TEXT NOT NULL,
    count INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE holdfast_rate (key TEXT PRIMARY KEY, tat REAL NOT NULL) STRICT, WITHOUT ROWID;
  `,
  `
  -- The names that the code uses since: see "Key order" in the README.
  ALTER TABLE holdfast_room RENAME TO holdfast_meta;
  ALTER TABLE holdfast_line RENAME TO holdfast_ready;
  ALTER TABLE holdfast_ready RENAME COLUMN line TO queue;
  DROP INDEX holdfast_event_lane;
  ALTER TABLE holdfast_event RENAME COLUMN lane TO order_key;
  ALTER TABLE holdfast_event RENAME COLUMN hand TO lease_id;
  ALTER TABLE holdfast_event RENAME COLUMN kept_until TO extended_until;
  CREATE INDEX holdfast_event_order_key ON holdfast_event (topic, order_key) WHERE order_key IS NOT NULL;
  ALTER TABLE holdfast_lease RENAME COLUMN n TO id;
  ALTER TABLE holdfast_lease RENAME COLUMN look_at TO check_at;
  ALTER TABLE holdfast_lease RENAME COLUMN in_hand TO unsettled;
  ALTER TABLE holdfast_lease RENAME COLUMN has_kept TO has_extended;
  ALTER TABLE holdfast_lease RENAME COLUMN has_runs TO has_followers;

  -- Where store time was at a moment of the machine's monotonic clock; no row before the first write.
  CREATE TABLE holdfast_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    monotonic_ms REAL NOT NULL,
    store_ms REAL NOT NULL,
    behind_ms REAL NOT NULL               -- how far store time was behind wall time
  ) STRICT;

  -- Events that are due at a time of day: until then they are never due by the store's clock.
  CREATE TABLE holdfast_appointment (
    seq INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    wall_due_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX holdfast_appointment_topic ON holdfast_appointment (topic, wall_due_at);
  CREATE INDEX holdfast_appointment_due ON holdfast_appointment (wall_due_at);

  ALTER TABLE holdfast_operation ADD COLUMN selects_to INTEGER;  -- the latest time of parking that it selects
  `,
  `
  -- Parked events, with new columns before the payload: SQLite reads a long payload to reach a column behind it.
  ALTER TABLE holdfast_parked RENAME TO holdfast_parked_old;
  DROP INDEX holdfast_parked_list;
  DROP INDEX holdfast_parked_group;
  DROP INDEX holdfast_parked_operation;
  DROP INDEX holdfast_parked_removed;
  CREATE TABLE holdfast_parked (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    operation TEXT,                       -- the replay to which the event belongs now
    replayed_by TEXT,                     -- the latest replay that published it again
    changed_by TEXT,                      -- the discard, restore, keep or undo that changed it last
    removed_before INTEGER,               -- removed_at before the last keep
    version INTEGER NOT NULL,
    parked_at INTEGER NOT NULL,
    removed_at INTEGER NOT NULL,
    parkings INTEGER NOT NULL,
    topic TEXT NOT NULL,
    type TEXT,
    key TEXT,
    tenant TEXT,
    consumer TEXT,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    stop TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    final_attempt INTEGER NOT NULL,
    is_edited INTEGER NOT NULL,
    headers TEXT,
    correlation_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    origin_topic TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    expires_at INTEGER,
    replay TEXT,
    discarded TEXT,
    error TEXT,
    story TEXT NOT NULL,
    earlier TEXT,                         -- how it was parked before, as JSON
    edits TEXT,
    original_headers TEXT,
    original_payload ANY,
    payload ANY NOT NULL
  ) STRICT;
  INSERT INTO holdfast_parked
  SELECT number, id, status, operation, iif(status = 'replaying', operation, replay), NULL, NULL, 1, parked_at, removed_at, parkings, topic, type, key,
    tenant, NULL, reason, message, stop, fingerprint, final_attempt, is_edited, headers, correlation_id,
    idempotency_key, origin_topic, first_seen_at, expires_at, replay, json_set(discarded, '$.at', parked_at), error,
    story, NULL, nullif(edits, '[]'), original_headers, original_payload, payload
  FROM holdfast_parked_old;
  DROP TABLE holdfast_parked_old;
  CREATE INDEX holdfast_parked_list ON holdfast_parked (status, parked_at, id);
  CREATE INDEX holdfast_parked_group ON holdfast_parked (status, fingerprint, topic, parked_at, id);
  CREATE INDEX holdfast_parked_operation ON holdfast_parked (operation, status, parked_at, id)
    WHERE operation IS NOT NULL;
  CREATE INDEX holdfast_parked_replayed_by ON holdfast_parked (replayed_by, status, parked_at, id)
    WHERE replayed_by IS NOT NULL;
  CREATE INDEX holdfast_parked_changed_by ON holdfast_parked (changed_by) WHERE changed_by IS NOT NULL;
  CREATE INDEX holdfast_parked_removed ON holdfast_parked (removed_at) WHERE operation IS NULL;

  -- How many events are parked. The code keeps it: with triggers, parking an event takes a third longer.
  CREATE TABLE holdfast_parked_count (
    status TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    topic TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (status, fingerprint, topic)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO holdfast_parked_count
  SELECT status, fingerprint, topic, count(*) FROM holdfast_parked GROUP BY status, fingerprint, topic;

  ALTER TABLE holdfast_operation ADD COLUMN kind TEXT NOT NULL DEFAULT 'replay';
  ALTER TABLE holdfast_operation ADD COLUMN undoes TEXT;            -- the audit entry that it undoes
  ALTER TABLE holdfast_operation ADD COLUMN undone_by TEXT;         -- the operation that undoes it
  ALTER TABLE holdfast_operation ADD COLUMN keeps_to INTEGER;       -- removed_at of the events that it keeps
  ALTER TABLE holdfast_operation ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE holdfast_operation RENAME COLUMN selected_to TO position;
  ALTER TABLE holdfast_operation RENAME COLUMN selects_to TO covers_to;
  UPDATE holdfast_operation SET request = json_set(request, '$.kind', 'replay');
  CREATE INDEX holdfast_operation_unfinished ON holdfast_operation (number) WHERE ended_at IS NULL;

  ALTER TABLE holdfast_audit ADD COLUMN undoes TEXT;
  ALTER TABLE holdfast_audit ADD COLUMN undone_by TEXT;
  ALTER TABLE holdfast_audit ADD COLUMN before TEXT;
  UPDATE holdfast_audit SET
    what = iif(what = 'replay_stopped', 'operation_stopped', what),
    subjects = (
      SELECT json_group_array(CASE
        WHEN what LIKE 'replay%' THEN 'operation:' WHEN what LIKE 'rule%' THEN 'rule:' ELSE 'event:' END || value)
      FROM json_each(subjects));
  CREATE UNIQUE INDEX holdfast_audit_id ON holdfast_audit (id);
  CREATE INDEX holdfast_audit_who ON holdfast_audit (who);
  CREATE TABLE holdfast_audit_subject (
    subject TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (subject, number)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO holdfast_audit_subject SELECT value, number FROM holdfast_audit, json_each(subjects);
  CREATE TRIGGER holdfast_audit_inserted AFTER INSERT ON holdfast_audit BEGIN
    INSERT OR IGNORE INTO holdfast_audit_subject SELECT value, new.number FROM json_each(new.subjects);
  END;
  CREATE TRIGGER holdfast_audit_deleted AFTER DELETE ON holdfast_audit BEGIN
    DELETE FROM holdfast_audit_subject
    WHERE number = old.number AND subject IN (SELECT value FROM json_each(old.subjects));
  END;

  ALTER TABLE holdfast_control ADD COLUMN undoes TEXT;
  ALTER TABLE holdfast_control ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

  CREATE TABLE holdfast_process (
    id TEXT PRIMARY KEY,
    heard_at INTEGER NOT NULL,            -- by the store's clock
    report TEXT NOT NULL
  ) STRICT;
  CREATE INDEX holdfast_process_heard ON holdfast_process (heard_at);
  `,
  journalSchema,
];

/** Migrates the file in one transaction. A crash leaves the file unchanged. */
export function migrate(database: DatabaseSync, steps: readonly string[] = schemaSteps): void {
  if (versionOf(database) === steps.length) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    database.exec('CREATE TABLE IF NOT EXISTS holdfast_schema (version INTEGER NOT NULL) STRICT');
    const version = versionOf(database) ?? 0;
    if (version > steps.length) throw tooNew(version, steps.length);
    for (const step of steps.slice(version)) database.exec(step);
    database.exec('DELETE FROM holdfast_schema');
    database.prepare('INSERT INTO holdfast_schema VALUES (?)').run(steps.length);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Returns the version of the schema; `undefined`: the file has no tables of this package. */
export function versionOf(database: DatabaseSync): number | undefined {
  const table = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_schema'`).get();
  const row = table && database.prepare('SELECT version FROM holdfast_schema').get();
  return row && Number(row.version);
}

function tooNew(found: number, known: number): SqliteError {
  return new SqliteError(
    'SCHEMA_TOO_NEW',
    `the file has schema version ${found}, and this release knows up to ${known}: open it with the newer release`,
  );
}
