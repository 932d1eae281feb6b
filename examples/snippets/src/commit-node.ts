import { createServer, type Server } from 'node:http';
import type { DatabaseSync } from 'node:sqlite';
import { json } from 'node:stream/consumers';
import { contextOf, idempotency } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';
import type { SqliteEngine } from '@holdfast/sqlite';

/** An order and its key are in one file: both are there, or neither is. */
export function orders({ ledger }: SqliteEngine): Server {
  const once = idempotency({ ledger, scope: 'public', transactional: true });
  return createServer(
    guard([once], async (request, response) => {
      const { item } = (await json(request)) as { item: string };
      const { idempotent } = contextOf<DatabaseSync>(request)!;
      const answer = await idempotent!.commit((database) => {
        const insert = database.prepare('INSERT INTO orders (item) VALUES (?)');
        const { lastInsertRowid: id } = insert.run(item);
        const headers = { 'content-type': 'application/json', location: `/orders/${id}` };
        return { status: 201, headers, body: JSON.stringify({ id: Number(id) }) };
      });
      sendResponse(response, answer);
    }),
  );
}
