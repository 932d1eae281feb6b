/**
 * The tables. Times are epoch ms by the server's clock. `ready` is the queue by due time. `lease_group` has
 * one row for up to 200 leased events. An event in neither waits for an earlier event of its key.
 */
export const tables = `
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- After a crash the sequence may give numbers again that were not yet on disk: the time makes the token unique.
CREATE FUNCTION new_token(counter regclass) RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT nextval(counter) * 1048576 + now_ms() % 1048576 $$;

CREATE TABLE topic (
  topic int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  ordering text NOT NULL CHECK (ordering IN ('none', 'key')),
  keep_settled_ms bigint NOT NULL,
  -- a quarantine has ended, and its events are not back in the ready queue yet
  releasing boolean NOT NULL DEFAULT false
);

-- True after a lease that was not full: only then does a publish send a NOTIFY.
CREATE TABLE bell (
  topic int PRIMARY KEY,
  asleep boolean NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

CREATE SEQUENCE event_seq;
CREATE TABLE event (
  topic int NOT NULL,
  seq bigint NOT NULL DEFAULT nextval('event_seq'),
  first_seen_at bigint NOT NULL,
  due_at bigint NOT NULL,
  expires_at bigint,
  attempts int NOT NULL DEFAULT 0,
  snoozes int NOT NULL DEFAULT 0,
  deaths int NOT NULL DEFAULT 0,
  suspect boolean NOT NULL DEFAULT false,
  -- parked, and blocks its key
  blocking boolean NOT NULL DEFAULT false,
  bytes_are_text boolean NOT NULL DEFAULT false,
  id text COLLATE "C" NOT NULL,
  -- the key whose order it holds; null where order is not kept, or not any longer
  order_key text COLLATE "C",
  type text COLLATE "C",
  key text COLLATE "C",
  tenant text COLLATE "C",
  -- the topic it came from; null: this one
  origin text,
  replay text COLLATE "C",
  body text,
  bytes bytea,
  -- JSON of headers, correlation id and idempotency key, where given
  extras text,
  next_delay_ms double precision,
  last_error text,
  story text,
  PRIMARY KEY (seq),
  UNIQUE (topic, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_order_key ON event (topic, order_key, seq) WHERE order_key IS NOT NULL;

-- queue: 0 first tries, 1 retries, 2 suspects; 10 more while a quarantine holds it.
CREATE TABLE ready (
  topic int NOT NULL,
  queue smallint NOT NULL,
  due_at bigint NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (topic, queue, due_at, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE lease_token;
CREATE TABLE lease_group (
  token bigint NOT NULL,
  -- a heartbeat may extend some events of a group only: those have a part of their own
  part int NOT NULL DEFAULT 0,
  topic int NOT NULL,
  owner text NOT NULL,
  ends_at bigint NOT NULL,
  has_followers boolean NOT NULL,
  seqs bigint[] NOT NULL,
  PRIMARY KEY (token, part)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lease_group_ends ON lease_group (topic, ends_at);

-- A key that has events. Idle: none of them is in the ready queue, leased or blocking; the next lease looks for its head.
CREATE TABLE active_key (
  topic int NOT NULL,
  order_key text COLLATE "C" NOT NULL,
  idle boolean NOT NULL DEFAULT false,
  PRIMARY KEY (topic, order_key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX active_key_idle ON active_key (topic) WHERE idle;

CREATE TABLE settled (
  topic int NOT NULL,
  seq bigint NOT NULL,
  how text NOT NULL,
  settled_at bigint NOT NULL,
  removed_at bigint NOT NULL,
  first_seen_at bigint NOT NULL,
  expires_at bigint,
  bytes_are_text boolean NOT NULL,
  id text NOT NULL,
  type text,
  key text,
  tenant text,
  origin text,
  replay text,
  body text,
  bytes bytea,
  extras text,
  PRIMARY KEY (topic, seq)
);
CREATE INDEX settled_removed ON settled (removed_at);

CREATE TABLE control (
  id text COLLATE "C" PRIMARY KEY,
  topic text COLLATE "C" NOT NULL,
  control json NOT NULL,
  kind text NOT NULL,
  -- of a quarantine
  tenant text COLLATE "C",
  key text COLLATE "C",
  who text NOT NULL,
  why text NOT NULL,
  since bigint NOT NULL,
  until bigint
);
CREATE INDEX control_topic ON control (topic);
CREATE TABLE control_sheet (version bigint NOT NULL);
INSERT INTO control_sheet VALUES (1);

CREATE TABLE ledger_key (
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint text NOT NULL,
  token bigint NOT NULL,
  lease_ends_at bigint NOT NULL,
  attempt int NOT NULL,
  done boolean NOT NULL,
  record text,
  record_bytes bytea,
  removed_at bigint NOT NULL,
  PRIMARY KEY (scope, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX ledger_key_removed ON ledger_key (removed_at);
CREATE SEQUENCE ledger_token;

-- Time-ordered ids begin with their time, so a range of ids is a range of time: each has a partition, which is dropped when it has expired.
-- An event always finds its own mark; ids that are not time-ordered share the last partition.
CREATE TABLE mark (
  event_id text COLLATE "C" NOT NULL,
  handler text COLLATE "C" NOT NULL,
  marked_at bigint NOT NULL,
  PRIMARY KEY (event_id, handler)
) PARTITION BY RANGE (event_id);
CREATE TABLE mark_other PARTITION OF mark DEFAULT;
CREATE INDEX mark_other_marked ON mark_other (marked_at);

CREATE TABLE parked (
  id text COLLATE "C" PRIMARY KEY,
  status text NOT NULL,
  parked_at bigint NOT NULL,
  parkings int NOT NULL,
  removed_at bigint NOT NULL,
  operation text COLLATE "C",
  topic text COLLATE "C" NOT NULL,
  first_seen_at bigint NOT NULL,
  expires_at bigint,
  bytes_are_text boolean NOT NULL,
  type text COLLATE "C",
  key text COLLATE "C",
  tenant text COLLATE "C",
  origin text NOT NULL,
  replay text COLLATE "C",
  body text,
  bytes bytea,
  extras text,
  reason text NOT NULL,
  message text NOT NULL,
  stop text NOT NULL,
  final_attempt int NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  error text,
  story text NOT NULL,
  original text,
  edits text NOT NULL DEFAULT '[]',
  discarded text
);
-- An event that a replay selects is no longer in this index.
CREATE INDEX parked_free ON parked (parked_at, id) WHERE status = 'parked' AND operation IS NULL;
CREATE INDEX parked_latest ON parked (status, parked_at DESC, id DESC);
CREATE INDEX parked_fingerprint ON parked (status, fingerprint, parked_at);
CREATE INDEX parked_topic ON parked (topic, status, parked_at DESC);
CREATE INDEX parked_operation ON parked (operation, parked_at) WHERE operation IS NOT NULL;
CREATE INDEX parked_removed ON parked (removed_at) WHERE operation IS NULL;
CREATE INDEX parked_key ON parked (key) WHERE key IS NOT NULL;
CREATE INDEX parked_tenant ON parked (tenant, status, parked_at) WHERE tenant IS NOT NULL;

CREATE TABLE replay (
  id text COLLATE "C" PRIMARY KEY,
  number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  request json NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  stage text NOT NULL,
  version int NOT NULL DEFAULT 1,
  started_at bigint NOT NULL,
  ended_at bigint,
  stopped text,
  selected int NOT NULL DEFAULT 0,
  released int NOT NULL DEFAULT 0,
  succeeded int NOT NULL DEFAULT 0,
  failed_again int NOT NULL DEFAULT 0,
  memo json NOT NULL
);

CREATE TABLE triage_rule (
  name text COLLATE "C" PRIMARY KEY,
  number bigint GENERATED ALWAYS AS IDENTITY,
  rule json NOT NULL
);

CREATE TABLE audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL,
  at bigint NOT NULL,
  what text NOT NULL,
  subjects text[] NOT NULL,
  count int NOT NULL,
  who text NOT NULL,
  why text NOT NULL
);

-- tat: the theoretical arrival time of the GCRA, epoch ms.
CREATE TABLE rate_limit (
  key text COLLATE "C" PRIMARY KEY,
  tat double precision NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
`;
