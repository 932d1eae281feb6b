import type { DatabaseSync } from 'node:sqlite';
import { SqliteError } from './sqlite-errors.ts';

/**
 * The tables, one step a version: a released step is never changed, a new one is added. Every name starts with
 * `holdfast_`, so that the file may hold tables of its user, too.
 */
export const schemaSteps: readonly string[] = [
  `
  CREATE TABLE holdfast_room (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL,                -- counts all that needs an order or a name of its own
    controls_version INTEGER NOT NULL,
    controls_end_at INTEGER,              -- when the next control ends by itself
    is_releasing INTEGER NOT NULL         -- what a lifted quarantine held is still on its way back
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
    rest TEXT,                            -- what few events have, as JSON: a column less is time saved for all
    first_seen_at INTEGER NOT NULL,
    lane TEXT,                            -- the key that it keeps waiting
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,    -- above 0: a suspect
    next_delay_ms REAL,
    fence INTEGER NOT NULL DEFAULT 0,     -- leases up to this one mean nothing any more
    kept_until INTEGER,                   -- the end of its lease, where a heartbeat has moved it
    hand INTEGER,                         -- the lease that has it although its head is back in the line
    blocking INTEGER NOT NULL DEFAULT 0,  -- parked, and only holding its place
    last_error TEXT,
    story TEXT
  ) STRICT;
  CREATE UNIQUE INDEX holdfast_event_id ON holdfast_event (id, topic);
  CREATE INDEX holdfast_event_lane ON holdfast_event (topic, lane) WHERE lane IS NOT NULL;
  CREATE INDEX holdfast_event_blocking ON holdfast_event (topic) WHERE blocking = 1;

  -- What can be leased, now or when it is due: 0 first tries, 1 retries, 2 suspects. Neither what is in hand nor what
  -- waits behind the head of its key is here.
  CREATE TABLE holdfast_line (
    topic INTEGER NOT NULL,
    line INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (topic, line, due_at, seq)
  ) STRICT, WITHOUT ROWID;

  -- What a lease has found under quarantine, out of the way of the others.
  CREATE TABLE holdfast_held (
    control TEXT NOT NULL,
    seq INTEGER NOT NULL,
    topic INTEGER NOT NULL,
    PRIMARY KEY (control, seq)
  ) STRICT, WITHOUT ROWID;

  -- One row for all that was leased together.
  CREATE TABLE holdfast_lease (
    n INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    owner TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    look_at INTEGER NOT NULL,             -- when the first of its events may have to be taken back
    in_hand INTEGER NOT NULL,             -- how many are not settled
    has_kept INTEGER NOT NULL DEFAULT 0,  -- some have a kept_until
    has_runs INTEGER NOT NULL,            -- some were not the head of their key
    seqs TEXT NOT NULL                    -- its events, as runs of sequences
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
  -- Time-ordered ids: what is marked now lies at the end, and what is forgotten together lies together.
  CREATE TABLE holdfast_mark (
    handler INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (handler, event_id)
  ) STRICT, WITHOUT ROWID;
  -- The marks whose ids begin with prefix, some three days of them, and until when they are needed.
  CREATE TABLE holdfast_mark_bucket (
    handler INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (handler, prefix)
  ) STRICT, WITHOUT ROWID;
  -- Marks of events whose ids do not tell their time.
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
    selected_to TEXT                      -- how far the selection has looked
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
];

/** Brings the file to the version of this code, in one transaction: a crash on the way leaves it as it was. */
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

/** Undefined where there is no store in the file. */
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
