import type { Harness } from '@holdfast/contracts/conformance';
import {
  openPostgres,
  type PostgresEngine,
  type PostgresOptions,
  type PostgresPool,
  type PostgresTransaction,
} from '@holdfast/postgres';
import { systemClock } from 'holdfast';
import pg from 'pg';

let schemas = 0;

/** A schema that goes with the test. */
export interface Ground {
  readonly schema: string;
  /** Past the engine. */
  readonly admin: pg.Pool;
  /** For engines that share connections. */
  readonly pool: PostgresPool;
  open(options?: Partial<PostgresOptions>): Promise<PostgresEngine>;
  clear(): Promise<void>;
}

export function newGround(url: string): Ground {
  const schema = `test_${process.pid}_${++schemas}`;
  const admin = new pg.Pool({ connectionString: url, max: 3 });
  admin.on('error', () => {}); // a server that is restarted on purpose
  const pool = new pg.Pool({ connectionString: url, max: 6, options: '-c synchronous_commit=off' });
  pool.on('error', () => {});
  const engines: PostgresEngine[] = [];
  return {
    schema,
    admin,
    pool: pool as unknown as PostgresPool,
    async open(options) {
      const from = options?.pool ? {} : { url, connectionsMax: 4 };
      const engine = await openPostgres({ ...from, schema, durability: 'process', ...options });
      engines.push(engine);
      return engine;
    },
    async clear() {
      await Promise.all(engines.map((engine) => engine.close()));
      await pool.end();
      await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await admin.end();
    },
  };
}

let checks = 0;

/** An engine under names of its own, on connections that are warm: the first call of a function on a connection compiles it. */
export async function postgresHarness(ground: Ground, unitMs: number): Promise<Harness<PostgresTransaction>> {
  const { schema, admin } = ground;
  const prefix = `check${++checks}.`;
  let life = mortal(ground.pool);
  const open = () => ground.open({ pool: life.pool });
  const engine = await open();
  await admin.query(`CREATE TABLE IF NOT EXISTS ${schema}.effect (name text PRIMARY KEY)`);
  return {
    engine,
    clock: systemClock,
    unitMs,
    prefix,
    passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    reopen() {
      life = mortal(ground.pool);
      return open();
    },
    dieAfterWrites: (writes) => life.dieAfterWrites(writes),
    effect: {
      async write(tx, name) {
        await tx.query(`INSERT INTO ${schema}.effect VALUES ($1)`, [prefix + name]);
      },
      async isThere(name) {
        const { rowCount } = await admin.query(`SELECT FROM ${schema}.effect WHERE name = $1`, [
          prefix + name,
        ]);
        return rowCount === 1;
      },
    },
    async dispose() {},
  };
}

/** A process that dies before its n-th write: a statement on its own, or a COMMIT. What it had open is rolled back. */
function mortal(pool: PostgresPool): { pool: PostgresPool; dieAfterWrites(writes: number): void } {
  let writesLeft = Infinity;
  const beforeWrite = () => {
    if (writesLeft === 0) throw new Error('the process has died');
    writesLeft -= 1;
  };
  return {
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    pool: {
      async query(config) {
        beforeWrite();
        return pool.query(config);
      },
      async connect() {
        const client = await pool.connect();
        return new Proxy(client, {
          get(target, name) {
            const value = Reflect.get(target, name);
            if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
            return async (...given: Parameters<typeof client.query>) => {
              if (given[0] === 'COMMIT') beforeWrite();
              return target.query(...given);
            };
          },
        });
      },
    },
  };
}
