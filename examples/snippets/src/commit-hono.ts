import type { DatabaseSync } from 'node:sqlite';
import {
  contextOf,
  type GracefulShutdownOptions,
  gracefulShutdown,
  idempotency,
  toResponse,
} from '@holdfast/server';
import { guard } from '@holdfast/server/hono';
import type { SqliteEngine } from '@holdfast/sqlite';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/** An order and its key are in one file: both are there, or neither is. */
export function orders({ ledger }: SqliteEngine): Hono {
  const app = new Hono();
  app.use(guard([idempotency({ ledger, scope: 'public', transactional: true })]));
  app.post('/orders', async (context) => {
    const { item } = await context.req.json();
    const { idempotent } = contextOf<DatabaseSync>(context)!;
    const answer = await idempotent!.commit((database) => {
      const insert = database.prepare('INSERT INTO orders (item) VALUES (?)');
      const { lastInsertRowid: id } = insert.run(item);
      const headers = { 'content-type': 'application/json', location: `/orders/${id}` };
      return { status: 201, headers, body: JSON.stringify({ id: Number(id) }) };
    });
    return toResponse(answer);
  });
  return app;
}

/** Serves until the process gets a signal, and then ends without failing a request. */
export function serveOrders(engine: SqliteEngine, port: number, options?: GracefulShutdownOptions) {
  return gracefulShutdown(serve({ fetch: orders(engine).fetch, port }), options);
}
