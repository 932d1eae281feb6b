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
  /** `postgres://user@host/database`; or `pool`. */
  readonly url?: string | undefined;
  /** A pool of your own: its connections decide the durability, and it is not closed with the engine. */
  readonly pool?: PostgresPool | undefined;
  /** Everything of ours lives in it; `holdfast` unless given. */
  readonly schema?: string | undefined;
  /** True: a database without that schema is refused and left as it is, for tools that only read. */
  readonly mustExist?: boolean | undefined;
  /**
   * What an answer survives. `power`, unless given: anything (`synchronous_commit = on`). `process`: the death of any of your
   * processes, but not a crash of the server, which may undo the last half second (`synchronous_commit = off`).
   */
  readonly durability?: 'process' | 'power' | undefined;
  /** Connections of the pool that is made for `url`; 10 unless given. One more listens where there is a doorbell. */
  readonly connectionsMax?: number | undefined;
  /**
   * The timeout of a statement, also of those in a handler's `commit`; its connection is closed, because a broken network gives no
   * error. 30 s unless given; a `pool` of your own has its `query_timeout`.
   */
  readonly answerWithinMs?: number | undefined;
  readonly limits?: Partial<SizeLimits> | undefined;
  /** How long marks are kept: longer than the longest retry and the parking lot together; 60 days unless given. */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept; 30 days unless given. */
  readonly keepParkedMs?: number | undefined;
  /** `sweep` warns of a transaction that is open for longer; a minute unless given. */
  readonly longTransactionMs?: number | undefined;
  /** Receives warnings for an operator; unless given, `process.emitWarning`. */
  readonly onWarning?: ((warning: PostgresWarning) => void) | undefined;
  /** For ids and timers of this process; times of events are the server's. */
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

/** Every contract, in one database. */
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
/** The longest name that PostgreSQL does not cut. */
const nameBytesMax = 63;

/** Connects and brings the schema up to date. Rejects with an error that names the reason if either is impossible. */
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
