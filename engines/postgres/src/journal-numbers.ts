import type { NewAssembly } from '@holdfast/contracts';
import type { Database, PostgresTransaction } from './database.ts';
import type { Numbers } from './journal-record.ts';

const programText = `WITH added AS (
    INSERT INTO {schema}.assembly_program (name, version) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING program
  ) SELECT program FROM added UNION ALL SELECT program FROM {schema}.assembly_program WHERE name = $1 AND version = $2`;
const queueText = `WITH added AS (
    INSERT INTO {schema}.assembly_queue (name, limits) VALUES ($1, '{}') ON CONFLICT DO NOTHING RETURNING queue
  ) SELECT queue FROM added UNION ALL SELECT queue FROM {schema}.assembly_queue WHERE name = $1`;

/** Callers choose the names of programs and queues, so there may be very many. */
const keptMax = 10_000;

/** The database numbers of programs and queues. A number never changes, so it is read once and cached. */
export class JournalNumbers {
  readonly #database: Database;
  readonly #kept = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Finds or creates the numbers for these assemblies. Those read within `tx` are not cached, because `tx`
   * may be rolled back.
   */
  async of(
    starts: readonly Pick<NewAssembly, 'name' | 'version' | 'queue'>[],
    tx?: PostgresTransaction,
  ): Promise<Numbers> {
    const own = new Map<string, number>();
    for (const { name, version, queue } of starts) {
      await this.#find(own, programKey(name, version), programText, [name, version], tx);
      if (queue !== undefined) await this.#find(own, queueKey(queue), queueText, [queue], tx);
    }
    return {
      program: ({ name, version }) => own.get(programKey(name, version))!,
      queue: (name) => (name === undefined ? 0 : own.get(queueKey(name))!),
    };
  }

  async #find(
    own: Map<string, number>,
    key: string,
    text: string,
    values: readonly unknown[],
    tx: PostgresTransaction | undefined,
  ): Promise<void> {
    if (own.has(key)) return;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      own.set(key, kept);
      return;
    }
    const ask = async () =>
      (tx ? await this.#database.rowsWithin(tx, text, values) : await this.#database.rows(text, values))[0];
    // No row: another process has just added the number, and the second query sees it.
    const row = (await ask()) ?? (await ask());
    const number = row![0] as number;
    own.set(key, number);
    if (tx) return;
    if (this.#kept.size >= keptMax) this.#kept.clear();
    this.#kept.set(key, number);
  }
}

function programKey(name: string, version: number): string {
  return `program ${version} ${name}`;
}

function queueKey(name: string): string {
  return `queue ${name}`;
}
