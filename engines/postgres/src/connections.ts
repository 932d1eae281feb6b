import { OptionsError } from 'holdfast';
import pg from 'pg';
import type { Database, PostgresPool } from './database.ts';
import type { Listener } from './doorbell.ts';

export interface ConnectionOptions {
  readonly url?: string | undefined;
  readonly pool?: PostgresPool | undefined;
  readonly durability?: 'process' | 'power' | undefined;
  readonly connectionsMax?: number | undefined;
  readonly answerWithinMs?: number | undefined;
}

/** The connection pool of an engine, either created from a URL or given by the caller. */
export interface Connections {
  readonly pool: PostgresPool;
  /** What a commit survives: a crash of your processes, or also a power cut. Call `checkDurability` first. */
  durability(): 'process' | 'power';
  /** Rejects if the given pool has another durability than the option `durability`. */
  checkDurability(database: Database): Promise<void>;
  openListener(): Promise<Listener>;
  close(): Promise<void>;
}

const connectWithinMs = 10_000;

export function connectionsOf(options: ConnectionOptions): Connections {
  const { url, pool, durability, connectionsMax = 10, answerWithinMs = 30_000 } = options;
  if ((url === undefined) === (pool === undefined)) throw new OptionsError('url', url, 'either url or pool');
  if (durability !== undefined && durability !== 'process' && durability !== 'power') {
    throw new OptionsError('durability', durability, 'process or power');
  }
  if (!(Number.isInteger(connectionsMax) && connectionsMax > 0)) {
    throw new OptionsError('connectionsMax', connectionsMax, 'a whole number above 0');
  }
  if (!(answerWithinMs > 0 && answerWithinMs < 2 ** 31)) {
    throw new OptionsError('answerWithinMs', answerWithinMs, 'a number of ms above 0');
  }
  return url === undefined
    ? connectionsOfPool(pool!, durability)
    : ownConnections(url, durability ?? 'power', connectionsMax, answerWithinMs);
}

function ownConnections(
  url: string,
  durability: 'process' | 'power',
  connectionsMax: number,
  answerWithinMs: number,
): Connections {
  const config: pg.ClientConfig = {
    connectionString: url,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectWithinMs,
    keepAlive: true,
    query_timeout: answerWithinMs,
    options: `-c synchronous_commit=${durability === 'power' ? 'on' : 'off'}`,
  };
  const pool = new pg.Pool({ ...config, max: connectionsMax });
  // The pool replaces a lost connection, and a running query rejects.
  pool.on('error', () => {});
  // A stopping server can send an error as soon as the connection is ready. Without a listener, Node would
  // end the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  return {
    pool: pool as unknown as PostgresPool,
    durability: () => durability,
    checkDurability: async () => {},
    close: () => pool.end(),

    async openListener() {
      const client = new pg.Client(config);
      client.on('error', () => {}); // ignored, because the event `end` follows
      await client.connect();
      return listenerOf(client, () => client.end());
    },
  };
}

function connectionsOfPool(pool: PostgresPool, wanted: 'process' | 'power' | undefined): Connections {
  let found: 'process' | 'power' = 'power';
  return {
    pool,
    durability: () => found,

    async checkDurability(database) {
      const [row] = await database.rows(`SELECT current_setting('synchronous_commit')`);
      found = row![0] === 'off' ? 'process' : 'power';
      if (wanted !== undefined && wanted !== found) {
        throw new OptionsError('durability', wanted, `${found}, as the connections of the pool say`);
      }
    },

    async openListener() {
      const client = await pool.connect();
      client.on('error', () => {});
      return listenerOf(client as unknown as pg.Client, async () => client.release(true));
    },

    close: async () => {}, // the application closes its own pool
  };
}

function listenerOf(client: pg.Client, close: () => Promise<void>): Listener {
  return {
    onNotification: (heard) => void client.on('notification', ({ payload = '' }) => heard(payload)),
    onEnd: (ended) => void client.on('end', ended),
    listen: async (channel) => void (await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`)),
    close,
  };
}
