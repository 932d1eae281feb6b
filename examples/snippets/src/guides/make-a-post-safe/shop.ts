import { createServer, type Server } from 'node:http';
import type { DatabaseSync } from 'node:sqlite';
import { contextOf, idempotency } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';
import type { SqliteEngine } from '@holdfast/sqlite';

/** A shop that takes orders. An order and the response to its key are in one file: both are there, or neither is. */
export function shop({ ledger }: SqliteEngine): Server {
  const once = idempotency({ ledger, scope: 'public', transactional: true });
  return createServer(
    guard([once], async (request, response) => {
      const answer = await contextOf<DatabaseSync>(request)!.idempotent!.commit((database) => {
        const { lastInsertRowid: id } = database.prepare("INSERT INTO orders (item) VALUES ('lamp')").run();
        return { status: 201, headers: {}, body: `order ${id}` };
      });
      sendResponse(response, answer);
    }),
  );
}
