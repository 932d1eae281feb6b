/**
 * The tables of the journal: assemblies (durable workflows), their steps, signals, leases and due times. A
 * payload is a text, or bytes in a column `…_bytes`. `journal-payload.ts` explains the first of these bytes.
 */
export const journalTables = `
CREATE TABLE assembly_program (
  program int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  UNIQUE (name, version)
);

-- A row is written at the start and at the end of an assembly. No index has a column that the end changes, so that the second write needs
-- no index entry (HOT).
CREATE SEQUENCE assembly_seq;
CREATE TABLE assembly (
  seq bigint PRIMARY KEY DEFAULT nextval('assembly_seq'),
  id text COLLATE "C" NOT NULL UNIQUE,
  program int NOT NULL,
  -- The state is 0 for open, 1 for parked, 2 for done and 3 for stopped. An open or parked assembly with a lease is running.
  state smallint NOT NULL DEFAULT 0,
  is_committed boolean NOT NULL DEFAULT false,
  -- The number of the queue is 0 if there is none.
  queue int NOT NULL,
  revision int NOT NULL DEFAULT 0,
  accepted_at bigint NOT NULL,
  expires_at bigint,
  ended_at bigint,
  keep_ms bigint NOT NULL,
  removed_at bigint,
  key text,
  tenant text,
  input text,
  input_bytes bytea,
  result text,
  result_bytes bytea,
  settings text,
  -- stop, parked and acts are JSON.
  stop text,
  parked text,
  acts text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The parked assemblies are few, and are found here.
CREATE TABLE assembly_parked (seq bigint PRIMARY KEY);

CREATE TABLE assembly_step (
  seq bigint NOT NULL,
  at bigint NOT NULL,
  due_at bigint,
  step_order int NOT NULL,
  attempts int NOT NULL,
  kind smallint NOT NULL,
  state smallint NOT NULL,
  path text COLLATE "C" NOT NULL,
  result text,
  result_bytes bytea,
  -- JSON of error, because, story and signal, which few steps have.
  rest text,
  PRIMARY KEY (seq, path)
) WITH (autovacuum_vacuum_cost_delay = 0);

CREATE TABLE assembly_signal (
  seq bigint NOT NULL,
  at bigint NOT NULL,
  number int NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  payload text,
  payload_bytes bytea,
  PRIMARY KEY (seq, number),
  UNIQUE (seq, id)
);

-- The assemblies that wait for a worker or for their time. Those that wait only for something from outside have no row.
CREATE TABLE assembly_due (
  program int NOT NULL,
  -- The line is 0 or the number of a queue. It is minus that number if other assemblies of the same key block this one.
  line int NOT NULL,
  due_at bigint NOT NULL,
  seq bigint NOT NULL UNIQUE,
  deaths int NOT NULL,
  key text,
  PRIMARY KEY (program, line, due_at, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX assembly_due_blocked ON assembly_due (line, key, due_at) WHERE line < 0;

-- The table is small, so the leases of a worker are found without an index.
CREATE TABLE assembly_lease (
  seq bigint PRIMARY KEY,
  token bigint NOT NULL,
  worker int NOT NULL,
  deaths int NOT NULL,
  queue int NOT NULL,
  key text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX assembly_lease_queue ON assembly_lease (queue, key) WHERE queue > 0;

-- One lease covers everything that a worker has.
CREATE TABLE assembly_worker (
  worker int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  ends_at bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE assembly_queue (
  queue int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  limits json NOT NULL
);

-- The assemblies that have passed the rate of their queue.
CREATE TABLE assembly_charged (seq bigint PRIMARY KEY);
`;
