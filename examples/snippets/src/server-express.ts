import type { DatabaseSync } from 'node:sqlite';
import { contextOf, type IdempotentRequest, idempotency } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/express';
import type { SqliteEngine } from '@holdfast/sqlite';
import express, { type Express } from 'express';

/** An order and its key are in one file: both are there, or neither is. */
export function orders({ ledger }: SqliteEngine): Express {
  const app = express();
  const once = idempotency({
    ledger,
    // Of a token that was verified before, never of a header that anybody can send.
    scope: ({ native }) => (native as express.Request).res?.locals.tenant,
    transactional: true,
  });
  app.use((_request, response, next) => {
    response.locals.tenant = 'tenant-1';
    next();
  });
  app.post('/orders', guard([once]), express.json(), async (request, response) => {
    const key = contextOf(request)!.idempotent as IdempotentRequest<DatabaseSync>;
    const answer = await key.commit((database) => {
      const { lastInsertRowid: id } = database
        .prepare('INSERT INTO orders (item) VALUES (?)')
        .run(request.body.item);
      return {
        status: 201,
        headers: { 'content-type': 'application/json', location: `/orders/${id}` },
        body: JSON.stringify({ id: Number(id) }),
      };
    });
    sendResponse(response, answer);
  });
  return app;
}
