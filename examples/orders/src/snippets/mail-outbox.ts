import type { DatabaseSync } from 'node:sqlite';
import { commit, type HandledEvent, type HandlerResult, outbox } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';

/** The mail is published if and only if the row is written. The topic `mails` must have been declared. */
export function shipAndTell(engine: SqliteEngine): (event: HandledEvent) => HandlerResult<DatabaseSync> {
  const mails = outbox({ engine, topic: 'mails' });
  return ({ key = '' }) =>
    commit((database) => {
      database.prepare('INSERT INTO shipped VALUES (?)').run(key);
      mails.publish(database, { type: 'shipped', key, payload: { order: key } });
    });
}
