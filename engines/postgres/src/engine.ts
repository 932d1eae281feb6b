import {
  type Broker,
  type Engine,
  type Features,
  type Ledger,
  type RateLimits,
  readLimits,
  type SizeLimits,
  type Triage,
  timeOrderedId,
} from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { auditOf } from './audit.ts';
import { postgresBroker } from './broker.ts';
import { connectionsOf } from './connections.ts';
import { Database, type PostgresPool, type PostgresTransaction } from './database.ts';
import { Doorbell } from './doorbell.ts';
import { postgresLedger } from './ledger.ts';
import { createMarkPartitions, dropMarkPartitions } from './mark-partitions.ts';
import { migrate } from './migrate.ts';
import { postgresRateLimits } from './rate-limits.ts';
import { migrations } from './schema/migrations.ts';
import { sweepRows } from './sweep.ts';
import { postgresTriage } from './triage.ts';
import { type PostgresWarning, vacuumWatch } from './vacuum-watch.ts';

export interface PostgresOptions {
  /** The address of the database, such as `postgres://user@host/database`. Give either `url` or `pool`. */
  readonly url?: string | undefined;
  /** A pool that your application owns. Its connections decide the durability, and `close` does not close it. */
  readonly pool?: PostgresPool | undefined;
  /** The schema for all our tables and functions. Default: `holdfast`. */
  readonly schema?: string | undefined;
  /** If true, a database without that schema is rejected and left unchanged. For tools that only read. */
  readonly mustExist?: boolean | undefined;
  /**
   * What a committed write survives. `process`: a crash of your processes; a crash of the server may undo the last half
   * second (`synchronous_commit = off`). `power` (the default): also a crash of the server or a power cut
   * (`synchronous_commit = on`).
   */
  readonly durability?: 'process' | 'power' | undefined;
  /**
   * The largest number of connections in the pool that is made for `url`. Default: 10. If there are consumers, one more
   * connection listens for notifications.
   */
  readonly connectionsMax?: number | undefined;
  /**
   * The timeout of each statement, also of statements in a handler's `commit`. After the timeout the connection is
   * closed, because a broken network gives no error. Default: 30 s. It has no effect on a `pool` of your own: set
   * `query_timeout` there.
   */
  readonly answerWithinMs?: number | undefined;
  readonly limits?: Partial<SizeLimits> | undefined;
  /**
   * How long marks are kept; a mark records that a handler has processed an event. It must be longer than the longest
   * retry and the retention of parked events together. Default: 60 days.
   */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept. Default: 30 days. */
  readonly keepParkedMs?: number | undefined;
  /** `sweep` warns of a transaction that has been open for longer than this. Default: one minute. */
  readonly longTransactionMs?: number | undefined;
  /** Receives warnings for an operator. Default: `process.emitWarning`. */
  readonly onWarning?: ((warning: PostgresWarning) => void) | undefined;
  /** The clock for ids and timers of this process. The times of events come from the server's clock. */
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof PostgresOptions, true>> = {
  url: true,
  pool: true,
  schema: true,
  mustExist: true,
  durability: true,
  connectionsMax: true,
  answerWithinMs: true,
  limits: true,
  keepMarksMs: true,
  keepParkedMs: true,
  longTransactionMs: true,
  onWarning: true,
  clock: true,
  random: true,
};

/** An engine that stores everything in one database: events, idempotency keys, parked events and rate limits. */
export interface PostgresEngine extends Engine<PostgresTransaction> {
  readonly durability: 'process' | 'power';
  readonly broker: Broker<PostgresTransaction>;
  readonly ledger: Ledger<PostgresTransaction>;
  readonly triage: Triage;
  readonly rateLimits: RateLimits;
}

export const postgresFeatures: Features = {
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  retriesShare: true,
  suspects: true,
  waitingList: true,
  quarantine: true,
  sharedControls: true,
  doorbell: true,
  retention: true,
  marksWithSettlement: true,
  sharedTransaction: true,
  parksInTriage: true,
  durable: true,
};

const dayMs = 24 * 60 * 60 * 1000;
/** The length (bytes) of the longest name that PostgreSQL does not truncate. */
const nameBytesMax = 63;

/** Connects, and migrates the schema. If one of these fails, it rejects with an error that names the reason. */
export async function openPostgres(options: PostgresOptions): Promise<PostgresEngine> {
  assertKnownFields(known, options);
  const { schema = 'holdfast', clock = systemClock, random = systemRandom } = options;
  const { keepMarksMs = 60 * dayMs, keepParkedMs = 30 * dayMs, longTransactionMs = 60_000 } = options;
  const { onWarning = emitWarning, mustExist = false } = options;
  if (typeof mustExist !== 'boolean') throw new OptionsError('mustExist', mustExist, 'true or false');
  assertSchemaName(schema);
  for (const [name, value] of Object.entries({ keepMarksMs, keepParkedMs, longTransactionMs })) {
    if (!(value >= 0 && value < Infinity)) throw new OptionsError(name, value, 'a number of ms from 0');
  }
  const limits = readLimits(options.limits);
  const connections = connectionsOf(options);
  const database = new Database(connections.pool, schema, clock);
  try {
    await migrate(database, schema, migrations, mustExist);
    await createMarkPartitions(database, schema);
    await connections.checkDurability(database);
  } catch (error) {
    await connections.close();
    throw error;
  }

  const newId = timeOrderedId(clock, random);
  const writeAudit = auditOf(database, newId);
  const channel = `holdfast_${schema}`.slice(0, nameBytesMax);
  const doorbell = new Doorbell(database, channel, connections.openListener);
  const watchVacuum = vacuumWatch(database, longTransactionMs, onWarning);

  return {
    name: 'postgres',
    durability: connections.durability(),
    features: postgresFeatures,
    broker: postgresBroker({ database, doorbell, channel, limits, keepParkedMs, newId }),
    ledger: postgresLedger(database),
    triage: postgresTriage({ database, limits, keepParkedMs, writeAudit, newId }),
    rateLimits: postgresRateLimits(database),

    async sweep(limit) {
      await watchVacuum();
      await createMarkPartitions(database, schema);
      const dropped = await dropMarkPartitions(database, schema, keepMarksMs);
      return dropped + (await sweepRows(database, limit, keepMarksMs, writeAudit));
    },

    async close() {
      await doorbell.close();
      await connections.close();
    },
  };
}

function assertSchemaName(schema: string): void {
  if (schema === '' || Buffer.byteLength(schema) > nameBytesMax || schema.includes('\0')) {
    throw new OptionsError('schema', schema, `a name of 1 to ${nameBytesMax} bytes`);
  }
}

function emitWarning({ message, code }: PostgresWarning): void {
  process.emitWarning(message, { type: 'HoldfastWarning', code });
}
