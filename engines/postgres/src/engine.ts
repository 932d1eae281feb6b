import {
  type Audit,
  type Broker,
  type Controls,
  type Engine,
  type Features,
  type Journal,
  type Ledger,
  type Presence,
  type RateLimits,
  readLimits,
  type SizeLimitOptions,
  type Triage,
  timeOrderedId,
} from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { auditOf, postgresAudit } from './audit.ts';
import { postgresBroker } from './broker.ts';
import { connectionsOf } from './connections.ts';
import { Database, type PostgresPool, type PostgresTransaction } from './database.ts';
import { Doorbell } from './doorbell.ts';
import { postgresJournal } from './journal.ts';
import { postgresLedger } from './ledger.ts';
import { createMarkPartitions, dropMarkPartitions } from './mark-partitions.ts';
import { migrate } from './migrate.ts';
import { ParkedCounts } from './parked-counts.ts';
import { postgresPresence } from './presence.ts';
import { postgresRateLimits } from './rate-limits.ts';
import { migrations } from './schema/migrations.ts';
import { sweepRows } from './sweep.ts';
import { postgresTriage } from './triage.ts';
import { type PostgresWarning, vacuumWatch } from './vacuum-watch.ts';

/** The options of `openPostgres`. Either `url` or `pool` is required. */
export interface PostgresOptions {
  /**
   * The address of the database, such as `postgres://user@host/database`. Give either `url` or `pool`. Default: none.
   */
  readonly url?: string | undefined;
  /** A pool of your application. `close` does not close it. Default: a pool for `url`. */
  readonly pool?: PostgresPool | undefined;
  /** The schema for the tables and functions of this package. Default: `holdfast`. */
  readonly schema?: string | undefined;
  /** True: rejects a database without this schema, instead of creating it. Default: `false`. */
  readonly mustExist?: boolean | undefined;
  /**
   * What a commit survives. `process`: a crash of your processes; a server crash may undo the last half second.
   * `power`: also a server crash or a power cut. Default: `power`.
   */
  readonly durability?: 'process' | 'power' | undefined;
  /** The most connections for `url`. Consumers need one more, to listen for notifications. Default: `10`. */
  readonly connectionsMax?: number | undefined;
  /**
   * The timeout of each statement, also in a handler's `commit`, in ms. For your own `pool`, set `query_timeout` there.
   * Default: `30000`.
   */
  readonly answerWithinMs?: number | undefined;
  /** The largest events and batches. Default: those of `SizeLimits`. */
  readonly limits?: SizeLimitOptions | undefined;
  /**
   * How long it is remembered that an event was handled, in ms. Must be longer than all retries plus `keepParkedMs`.
   * Default: `5184000000` (60 days).
   */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept, in ms. Default: `2592000000` (30 days). */
  readonly keepParkedMs?: number | undefined;
  /** `sweep` warns of a transaction that is open for longer than this, in ms. Default: `60000`. */
  readonly longTransactionMs?: number | undefined;
  /** Receives warnings for an operator. Default: `process.emitWarning`. */
  readonly onWarning?: ((warning: PostgresWarning) => void) | undefined;
  /** The clock for ids and timers of this process. Event times come from the server's clock. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers, for ids. Default: the system's. */
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

/** An engine on one PostgreSQL database. */
export interface PostgresEngine extends Engine<PostgresTransaction> {
  readonly durability: 'process' | 'power';
  readonly broker: Broker<PostgresTransaction>;
  readonly ledger: Ledger<PostgresTransaction>;
  readonly triage: Triage;
  readonly rateLimits: RateLimits;
  readonly controls: Controls;
  readonly audit: Audit;
  readonly presence: Presence;
  readonly journal: Journal<PostgresTransaction>;
}

/** The features of the PostgreSQL engine. It has all of them. */
export const postgresFeatures: Features = {
  arrivalOrder: true,
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  portableLeases: true,
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
/** PostgreSQL truncates longer names. */
const nameBytesMax = 63;

/** Opens an engine on PostgreSQL. It creates the schema, or migrates it to the newest version. */
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

  const parkedCounts = new ParkedCounts(database);
  const broker = postgresBroker({
    database,
    doorbell,
    channel,
    limits,
    keepParkedMs,
    writeAudit,
    parkedCounts,
    newId,
  });

  const journal = postgresJournal({ database, doorbell, channel, limits, random, writeAudit });

  return {
    name: 'postgres',
    durability: connections.durability(),
    features: postgresFeatures,
    broker,
    ledger: postgresLedger(database),
    triage: postgresTriage({ database, limits, keepParkedMs, writeAudit, parkedCounts, newId }),
    rateLimits: postgresRateLimits(database),
    controls: broker.controls,
    audit: postgresAudit(database, writeAudit),
    presence: postgresPresence(database),
    journal,

    async sweep(limit) {
      await watchVacuum();
      await createMarkPartitions(database, schema);
      const dropped = await dropMarkPartitions(database, schema, keepMarksMs);
      const removed = await sweepRows(database, limit, keepMarksMs, writeAudit);
      const ended = await journal.sweep(Math.max(0, limit - removed));
      await parkedCounts.fold();
      return dropped + removed + ended;
    },

    async close() {
      journal.close();
      await doorbell.close();
      await parkedCounts.close();
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
