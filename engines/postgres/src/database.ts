import { createHash } from 'node:crypto';
import type { Clock } from 'holdfast';
import pg from 'pg';
import { explainNul, isCollision, isUnanswered, toPostgresError } from './postgres-errors.ts';

/** The methods of a `pg` client that this engine calls. A handler's `commit` gets this object. */
export interface PostgresTransaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

/** The methods of a connection pool that this engine calls. A `Pool` of `pg` has them. */
export interface PostgresPool {
  connect(): Promise<PostgresTransaction & PoolMember>;
  query(config: object): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

interface PoolMember {
  /** Returns the connection to the pool. With `true`, the pool closes it. */
  release(destroy?: boolean): void;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
}

export type Row = readonly unknown[];

/** How often a statement is tried after a deadlock or a serialization failure. */
const triesMax = 5;

export class Database {
  readonly schema: string;
  readonly clock: Clock;
  readonly #pool: PostgresPool;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();

  constructor(pool: PostgresPool, schema: string, clock: Clock) {
    this.#pool = pool;
    this.schema = pg.escapeIdentifier(schema);
    this.clock = clock;
  }

  /** Executes one statement in its own transaction. `{schema}` in `text` stands for the schema name. */
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

  /**
   * Like `rows`, for a text that depends on a filter. It is not prepared: there are many texts, and the plan
   * must fit the values.
   */
  async search(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return (await this.#pool.query(this.#unprepared(text, values))).rows as Row[];
    } catch (error) {
      throw toPostgresError(explainNul(error, values));
    }
  }

  async rowsWithin(
    tx: PostgresTransaction,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    return this.#within(tx, this.#config(text, values), values);
  }

  async searchWithin(
    tx: PostgresTransaction,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return this.#within(tx, this.#unprepared(text, values), values);
  }

  async #within(
    tx: PostgresTransaction,
    config: object,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    const result = (tx as unknown as PostgresPool).query(config);
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

  #unprepared(text: string, values: readonly unknown[]): object {
    return { text: text.replaceAll('{schema}', this.schema), values, rowMode: 'array', types };
  }

  #config(text: string, values: readonly unknown[]): object {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      const full = text.replaceAll('{schema}', this.schema);
      // The name is a hash of the text, so that engines on one pool share prepared statements.
      const name = `holdfast_${createHash('sha256').update(full).digest('base64url').slice(0, 32)}`;
      statement = { name, text: full };
      this.#statements.set(text, statement);
    }
    return { ...statement, values, rowMode: 'array', types };
  }
}

const numbers = new Set([20, 21, 23, 700, 701, 1700]);

/**
 * Our own type parsers, because the application may have changed those of `pg`. 64-bit integers become
 * numbers.
 */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return numbers.has(oid) ? Number : pg.types.getTypeParser(oid, format as 'text');
  },
};
