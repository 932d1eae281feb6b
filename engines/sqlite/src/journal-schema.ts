/** The tables of the journal: assemblies (durable workflows), their steps, signals, leases and due times. */
export const journalSchema = `
  CREATE TABLE holdfast_program (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (name, version)
  ) STRICT;

  -- Written twice in a life: at the start and at the end. What changes in between is in the tables below.
  CREATE TABLE holdfast_assembly (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    program INTEGER NOT NULL,
    state INTEGER NOT NULL,               -- 0 open, 1 parked, 2 done, 3 stopped; an open one with a lease is running
    input ANY NOT NULL,
    result ANY,
    queue INTEGER NOT NULL,               -- 0: none
    key TEXT,
    tenant TEXT,
    settings TEXT,
    accepted_at INTEGER NOT NULL,
    expires_at INTEGER,
    ended_at INTEGER,
    keep_ms INTEGER NOT NULL,
    removed_at INTEGER,
    revision INTEGER NOT NULL DEFAULT 0,
    is_committed INTEGER NOT NULL DEFAULT 0,
    is_charged INTEGER NOT NULL DEFAULT 0, -- 1: the rate of its queue was charged
    stop TEXT,
    parked TEXT,
    acts TEXT
  ) STRICT;
  CREATE INDEX holdfast_assembly_removed ON holdfast_assembly (removed_at) WHERE removed_at IS NOT NULL;
  CREATE INDEX holdfast_assembly_parked ON holdfast_assembly (program, seq) WHERE state = 1;

  CREATE TABLE holdfast_assembly_step (
    seq INTEGER NOT NULL,
    path TEXT NOT NULL,
    step_order INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at INTEGER NOT NULL,
    due_at INTEGER,
    result ANY,
    rest TEXT,                            -- error, because, story and signal, as JSON: few steps have them
    PRIMARY KEY (seq, path)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE holdfast_assembly_signal (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    payload ANY,
    at INTEGER NOT NULL,
    PRIMARY KEY (seq, number)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX holdfast_assembly_signal_id ON holdfast_assembly_signal (seq, id);

  -- Assemblies that wait for a worker or for their time. Those that wait for a signal only have no row.
  CREATE TABLE holdfast_assembly_due (
    program INTEGER NOT NULL,
    line INTEGER NOT NULL,                -- 0, the id of a queue, or minus that id: blocked by others of its key
    due_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    key TEXT,
    PRIMARY KEY (program, line, due_at, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX holdfast_assembly_due_seq ON holdfast_assembly_due (seq);
  CREATE INDEX holdfast_assembly_due_blocked ON holdfast_assembly_due (line, key, due_at) WHERE line < 0;

  CREATE TABLE holdfast_assembly_lease (
    seq INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    key TEXT
  ) STRICT;
  CREATE INDEX holdfast_assembly_lease_queue ON holdfast_assembly_lease (queue, key) WHERE queue > 0;

  -- One lease covers everything that a worker has.
  CREATE TABLE holdfast_assembly_worker (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    ends_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE holdfast_assembly_queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    limits TEXT NOT NULL
  ) STRICT;
`;
