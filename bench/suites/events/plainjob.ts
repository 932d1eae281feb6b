import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { type Connection, defineQueue, defineWorker } from 'plainjob';
import { breathe } from '../../harness.ts';
import { type Contestant, rateOf } from './event-case.ts';
import { type Load, payload } from './through-consumer.ts';

const silent = { error() {}, warn() {}, info() {}, debug() {} };

/** One worker, as it comes: it claims and settles one by one. Jobs that are done stay in its table, as it likes them to. */
export function plainjob(file: string, { events, batch }: Load): Contestant {
  const connection = nodeSqlite(file);
  const queue = defineQueue({ connection, logger: silent });
  let done = 0;
  return {
    async round() {
      done = 0;
      const handle = async () => {
        done += 1;
      };
      const worker = defineWorker('bench', handle, { queue, logger: silent, pollIntervall: 1 });
      const rate = await rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          queue.addMany(
            'bench',
            Array.from({ length: batch }, () => payload),
          );
        }
        void worker.start();
        while (done < events) await breathe();
      });
      await worker.stop();
      return rate;
    },
    close: async () => queue.close(),
  };
}

/** The part of better-sqlite3 that plainjob uses. */
function nodeSqlite(file: string): Connection {
  const database = new DatabaseSync(file);
  const commit = database.prepare('COMMIT');
  const within =
    (begin: StatementSync, work: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      begin.run();
      try {
        const answer = work(...args);
        commit.run();
        return answer;
      } catch (error) {
        database.exec('ROLLBACK');
        throw error;
      }
    };
  const [deferred, immediate] = [database.prepare('BEGIN'), database.prepare('BEGIN IMMEDIATE')];
  const transaction = (work: (...args: unknown[]) => unknown) =>
    Object.assign(within(deferred, work), { immediate: within(immediate, work) });
  return {
    driver: 'better-sqlite3',
    filename: file,
    pragma: (statement) => database.exec(`PRAGMA ${statement}`),
    exec: (statement) => database.exec(statement),
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run: (...params: SQLInputValue[]) => statement.run(...params) as never,
        get: (...params: SQLInputValue[]) => statement.get(...params),
        all: (...params: SQLInputValue[]) => statement.all(...params),
      };
    },
    transaction: transaction as unknown as Connection['transaction'],
    close: () => database.close(),
  };
}
