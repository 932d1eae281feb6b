/**
 * The tables of events, keys, parked events, controls and the audit log. Times are epoch ms by the server's
 * clock. `ready` is the queue by due time. `lease_group` has one row for up to 200 leased events. An event in
 * neither waits for an earlier event of its key.
 */
export const tables = `
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Returns a number that no lease has had. After a crash a sequence may give numbers again that were not yet on disk, so the token also has
-- the time.
CREATE FUNCTION new_token(counter regclass) RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT nextval(counter) * 1048576 + now_ms() % 1048576 $$;

CREATE TABLE topic (
  topic int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  ordering text NOT NULL CHECK (ordering IN ('none', 'key')),
  keep_settled_ms bigint NOT NULL,
  -- True if a quarantine has ended, and its events are not back in the ready queue yet.
  releasing boolean NOT NULL DEFAULT false
);

-- asleep is true after a lease that was not full. Only then does a publish send a NOTIFY.
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
  -- True if the event is parked and blocks its key.
  blocking boolean NOT NULL DEFAULT false,
  bytes_are_text boolean NOT NULL DEFAULT false,
  id text COLLATE "C" NOT NULL,
  -- The key whose order the event holds. It is null where order is not kept, or not any longer.
  order_key text COLLATE "C",
  type text COLLATE "C",
  key text COLLATE "C",
  tenant text COLLATE "C",
  -- The topic from which the event came. Null means this topic.
  origin text,
  replay text COLLATE "C",
  body text,
  bytes bytea,
  -- JSON of the headers, the correlation id and the idempotency key, where they are given.
  extras text,
  next_delay_ms double precision,
  last_error text,
  story text,
  PRIMARY KEY (seq),
  UNIQUE (topic, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_order_key ON event (topic, order_key, seq) WHERE order_key IS NOT NULL;
CREATE INDEX event_blocking ON event (topic) WHERE blocking;

-- The queue is 0 for first tries, 1 for retries and 2 for suspects. It is 10 more while a quarantine holds the event.
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
  -- A heartbeat may extend only some events of a group. The other events get a part of their own.
  part int NOT NULL DEFAULT 0,
  topic int NOT NULL,
  owner text NOT NULL,
  ends_at bigint NOT NULL,
  has_followers boolean NOT NULL,
  seqs bigint[] NOT NULL,
  PRIMARY KEY (token, part)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lease_group_ends ON lease_group (topic, ends_at);

-- The keys that have events. A key is idle if none of its events is in the ready queue, leased or blocking. Then the next lease looks
-- for its head.
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
  -- The topic is null if the control belongs to a policy.
  topic text COLLATE "C",
  control json NOT NULL,
  kind text NOT NULL,
  -- Only a quarantine has a tenant or a key.
  tenant text COLLATE "C",
  key text COLLATE "C",
  who text NOT NULL,
  why text NOT NULL,
  since bigint NOT NULL,
  until bigint,
  -- The version of the controls when this one was imposed.
  version bigint NOT NULL DEFAULT 0,
  undoes text
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

-- Time-ordered ids begin with their time, so a range of ids is a range of time. Each range has a partition, which is dropped when it has
-- expired. An event always finds its own mark. Ids that are not time-ordered share the last partition.
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
  discarded text,
  consumer text COLLATE "C",
  replayed_by text COLLATE "C",
  version int NOT NULL DEFAULT 1,
  -- JSON of the parkings before this one: the first and the latest three.
  earlier text[] NOT NULL DEFAULT '{}',
  -- The discard, restore, keep or undo that changed the event last, and the value of removed_at before that.
  changed_by text COLLATE "C",
  removed_at_before bigint
);
CREATE INDEX parked_latest ON parked (status, parked_at DESC, id DESC);
-- The index has the topic, so that the events of a group in one topic are found without reading the others.
CREATE INDEX parked_fingerprint ON parked (status, fingerprint, parked_at, topic);
CREATE INDEX parked_topic ON parked (topic, status, parked_at DESC);
CREATE INDEX parked_operation ON parked (operation, parked_at) WHERE operation IS NOT NULL;
CREATE INDEX parked_removed ON parked (removed_at) WHERE operation IS NULL;
CREATE INDEX parked_key ON parked (key) WHERE key IS NOT NULL;
CREATE INDEX parked_tenant ON parked (tenant, status, parked_at) WHERE tenant IS NOT NULL;
CREATE INDEX parked_replayed ON parked (replayed_by, parked_at) WHERE replayed_by IS NOT NULL;
CREATE INDEX parked_changed ON parked (changed_by, parked_at, id) WHERE changed_by IS NOT NULL;

-- An operation walks over the events in the order of parked_at and id. The last event that it has seen is in position_at and position_id.
CREATE TABLE operation (
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
  memo json NOT NULL,
  kind text NOT NULL,
  -- The operation that an undo undoes.
  undo_of text COLLATE "C" UNIQUE,
  -- The audit entry that the act undoes.
  undoes text,
  changed int NOT NULL DEFAULT 0,
  position_at bigint,
  position_id text COLLATE "C"
);
CREATE INDEX operation_kind ON operation (kind, number);
CREATE INDEX operation_unfinished ON operation (number) WHERE ended_at IS NULL;

CREATE TABLE triage_rule (
  name text COLLATE "C" PRIMARY KEY,
  number bigint GENERATED ALWAYS AS IDENTITY,
  rule json NOT NULL
);

CREATE TABLE audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  what text NOT NULL,
  subjects text[] NOT NULL,
  count bigint NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  undoes text,
  undone_by text,
  -- JSON of the state before the act, if an undo needs it.
  before text
);
CREATE UNIQUE INDEX audit_id ON audit (id);
CREATE INDEX audit_who ON audit (who, number);
CREATE INDEX audit_what ON audit (what, number);
CREATE INDEX audit_at ON audit (at);
-- The entries of a subject are found here, in their order.
CREATE TABLE audit_subject (
  subject text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (subject, number)
);

-- tat is the theoretical arrival time of the GCRA in epoch ms.
CREATE TABLE rate_limit (
  key text COLLATE "C" PRIMARY KEY,
  tat double precision NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
`;
