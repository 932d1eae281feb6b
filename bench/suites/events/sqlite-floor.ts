import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { errorNote, timeOrderedId } from '@holdfast/contracts';
import { systemClock, systemRandom } from 'holdfast';
import { type Contestant, rateOf } from './event-case.ts';
import { latencyAt } from './idle-latency.ts';
import { type Load, payload } from './through-consumer.ts';

/** What one would write by hand: a table, an index of what is due, and the rows of what was processed. */
function open(file: string, durability: 'process' | 'power') {
  const database = new DatabaseSync(file);
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'};
    PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
    CREATE TABLE message (
      id INTEGER PRIMARY KEY, event_id TEXT, payload TEXT, due_at INTEGER, state INTEGER, lease_until INTEGER,
      attempts INTEGER DEFAULT 0, number INTEGER, lane TEXT, error TEXT);
    CREATE INDEX message_due ON message (due_at) WHERE state = 0;
    CREATE INDEX message_lane ON message (lane) WHERE lane IS NOT NULL;
    CREATE TABLE processed (event_id TEXT PRIMARY KEY) WITHOUT ROWID`);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  return {
    database,
    newId: timeOrderedId(systemClock, systemRandom),
    /** A bare LIMIT ? would have it parsed again each time: the floor is not to be slow by accident. */
    claim: (limit: number): StatementSync =>
      database.prepare(`
        UPDATE message SET state = 1, lease_until = ?1 + 30000 WHERE id IN (
          SELECT id FROM message WHERE state = 0 AND due_at <= ?1 ORDER BY due_at, id LIMIT ${limit})
        RETURNING id, event_id, payload, attempts, number, lane`),
    insert: database.prepare(`
      INSERT INTO message (event_id, payload, due_at, state, number, lane) VALUES (?, ?, ?, ?, ?, ?)`),
    mark: database.prepare('INSERT OR IGNORE INTO processed VALUES (?)'),
    remove: database.prepare('DELETE FROM message WHERE id = ? AND state = 1'),
    putBack: database.prepare(
      'UPDATE message SET state = 0, due_at = ?, attempts = attempts + 1, error = ? WHERE id = ?',
    ),
    transact(work: () => void): void {
      begin.run();
      work();
      commit.run();
    },
  };
}

/** What is kept about a failure is the same on both sides. */
const failure = errorNote(new Error('not yet'));
const attempt = {
  ...{ at: 1.7e12, tookMs: 0.01, class: 'transient', errorType: 'Error', errorMessage: 'not yet' },
  ...{
    verdict: 'retry',
    because: 'transient',
    delayMs: 1,
    owner: 'bench@1/01990000-0000-7000-8000-000000000000',
  },
};
const failures = [1, 2].map((attempts) =>
  JSON.stringify({
    failure,
    story: Array.from({ length: attempts }, (_, index) => ({ attempt: index + 1, ...attempt })),
  }),
);

/** Batched insert, claim, processed row and delete; what fails is put back with its error. */
export function bareQueue(file: string, { events, batch, fails }: Load): Contestant {
  const { database, newId, insert, claim, mark, remove, putBack, transact } = open(file, 'process');
  const claimBatch = claim(batch);
  return {
    round: () =>
      rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          const now = Date.now();
          transact(() => {
            for (let index = 0; index < batch; index++)
              insert.run(newId(), payload, now, 0, at + index, null);
          });
        }
        for (let done = 0; done < events; ) {
          let rows: ReturnType<StatementSync['all']> = [];
          transact(() => {
            rows = claimBatch.all(Date.now());
          });
          transact(() => {
            for (const { id, event_id, attempts, number } of rows) {
              if (fails?.(Number(number), Number(attempts) + 1))
                putBack.run(Date.now(), failures[Number(attempts)]!, id!);
              else {
                mark.run(event_id!);
                remove.run(id!);
                done += 1;
              }
            }
          });
        }
      }),
    close: async () => database.close(),
  };
}

/** The same with order by key: only the head of a key can be claimed, and its removal promotes the next one. */
export function bareLanes(file: string, { events, batch, key }: Load): Contestant {
  const { database, newId, insert, claim, mark, remove, transact } = open(file, 'process');
  const claimBatch = claim(batch);
  const isTaken = database.prepare('SELECT 1 FROM message WHERE lane = ? LIMIT 1');
  const promote = database.prepare(`
    UPDATE message SET state = 0 WHERE id = (SELECT id FROM message WHERE lane = ? ORDER BY id LIMIT 1)`);
  return {
    round: () =>
      rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          const now = Date.now();
          transact(() => {
            for (let index = 0; index < batch; index++) {
              const lane = key!(at + index);
              insert.run(newId(), payload, now, isTaken.get(lane) ? 2 : 0, at + index, lane);
            }
          });
        }
        for (let done = 0; done < events; ) {
          let rows: ReturnType<StatementSync['all']> = [];
          transact(() => {
            rows = claimBatch.all(Date.now());
          });
          transact(() => {
            for (const { id, event_id, lane } of rows) {
              mark.run(event_id!);
              remove.run(id!);
              promote.run(lane!);
            }
          });
          done += rows.length;
        }
      }),
    close: async () => database.close(),
  };
}

/** Insert, then claim, each with its commit: the lower bound of the latency. */
export function bareLatency(file: string, durability: 'process' | 'power', share: number): Contestant {
  const { database, newId, insert, claim, mark, remove, transact } = open(file, durability);
  const claimOne = claim(1);
  return {
    round: () =>
      latencyAt(share, async () => {
        const before = performance.now();
        transact(() => void insert.run(newId(), payload, Date.now(), 0, 0, null));
        let rows: ReturnType<StatementSync['all']> = [];
        transact(() => {
          rows = claimOne.all(Date.now());
        });
        const took = performance.now() - before;
        transact(() => {
          for (const { id, event_id } of rows) {
            mark.run(event_id!);
            remove.run(id!);
          }
        });
        return took;
      }),
    close: async () => database.close(),
  };
}
