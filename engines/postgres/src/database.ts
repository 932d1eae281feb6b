import { createHash } from 'node:crypto';
import type { Clock } from 'holdfast';
import pg from 'pg';
import { explainNul, isCollision, isUnanswered, toPostgresError } from './postgres-errors.ts';

/** The methods of a `pg` client that we use. A handler's `commit` gets this object. */
export interface PostgresTransaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

/** The methods of a `pg` pool that we use. */
export interface PostgresPool {
  connect(): Promise<PostgresTransaction & PoolMember>;
  query(config: object): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

interface PoolMember {
  /** Returns the connection to the pool. Pass `true` if the connection is broken: the pool then closes it. */
  release(destroy?: boolean): void;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
}

/** A row as an array, in the order of the columns. */
export type Row = readonly unknown[];

/**
 * How often a statement or transaction is tried if it collides with another one (a deadlock or a serialization
 * failure).
 */
const triesMax = 5;

/** Executes statements on a pool. Each statement is prepared once for each connection, and returns rows as arrays. */
export class Database {
  /** The name of the schema, quoted for SQL. */
  readonly schema: string;
  readonly clock: Clock;
  readonly #pool: PostgresPool;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();

  constructor(pool: PostgresPool, schema: string, clock: Clock) {
    this.#pool = pool;
    this.schema = pg.escapeIdentifier(schema);
    this.clock = clock;
  }

  /** Executes one statement in its own transaction. `{schema}` in `text` is replaced by the name of the schema. */
  async rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const config = this.#config(text, values);
    for (let tries = 1; ; tries++) {
      try {
        return (await this.#pool.query(config)).rows as Row[];
      } catch (error) {
        if (!isCollision(error) || tries === triesMax) throw toPostgresError(explainNul(error, values));
      }
    }
  }

  /** Executes one statement inside the transaction `tx`. */
  async rowsWithin(
    tx: PostgresTransaction,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    const result = (tx as unknown as PostgresPool).query(this.#config(text, values));
    const { rows } = await result.catch((error) => {
      throw explainNul(error, values);
    });
    return rows as Row[];
  }

  async transaction<T>(work: (tx: PostgresTransaction) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(work);
      } catch (error) {
        if (!isCollision(error) || tries === triesMax) throw toPostgresError(error);
      }
    }
  }

  async #attempt<T>(work: (tx: PostgresTransaction) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let isBroken = false;
    const onError = () => {
      isBroken = true; // the pending query rejects with the same error
    };
    client.on('error', onError);
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      if (isUnanswered(error)) onError();
      else await client.query('ROLLBACK').catch(onError);
      throw error;
    } finally {
      client.off('error', onError);
      client.release(isBroken);
    }
  }

  #config(text: string, values: readonly unknown[]): object {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      const full = text.replaceAll('{schema}', this.schema);
      // The name is a hash of the text, so that engines that share a pool also share its prepared statements.
      const name = `holdfast_${createHash('sha256').update(full).digest('base64url').slice(0, 32)}`;
      statement = { name, text: full };
      this.#statements.set(text, statement);
    }
    return { ...statement, values, rowMode: 'array', types };
  }
}

const numbers = new Set([20, 21, 23, 700, 701, 1700]);

/**
 * Our own type parsers, so that parsers which the application has set have no effect. 64-bit integers become numbers:
 * they are counts and times, which a JavaScript number holds exactly.
 */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return numbers.has(oid) ? Number : pg.types.getTypeParser(oid, format as 'text');
  },
};
