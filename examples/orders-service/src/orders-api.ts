import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { outbox } from '@holdfast/events';
import type { PostgresEngine, PostgresTransaction } from '@holdfast/postgres';
import { contextOf, deadline, type HealthPart, idempotency, shed } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';
import type { Pool } from 'pg';

export const topic = 'orders';

export interface PlacedOrder {
  readonly id: number;
  readonly item: string;
}

/** `POST /orders` places an order and publishes its event; `GET /orders/<id>` tells how far it is. */
export function ordersApi(engine: PostgresEngine, database: Pool, ready: HealthPart): Server {
  const placed = outbox<PlacedOrder, PostgresTransaction>({ engine, topic });
  const parts = [
    ready,
    deadline({ timeout: '5s' }),
    shed(),
    // All callers share one set of keys here. Where there are tenants, the scope is the tenant of a verified token.
    idempotency({ ledger: engine.ledger, scope: 'public', transactional: true, timeout: '500ms' }),
  ];
  const headers = { 'content-type': 'application/json' };
  return createServer(
    guard(parts, async (request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://orders');
      if (request.method === 'POST' && pathname === '/orders') {
        const { item } = Object((await json(request).catch(() => undefined)) as unknown) as {
          item?: unknown;
        };
        if (typeof item !== 'string')
          return sendResponse(response, { status: 400, headers, body: '{"error":"item is missing"}' });
        // The row, its event and the record of the key are one transaction.
        const answer = await contextOf<PostgresTransaction>(request)!.idempotent!.commit(async (tx) => {
          const { rows } = await tx.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', [item]);
          const { id } = rows[0] as { id: number };
          await placed.publish(tx, { type: 'placed', key: String(id), payload: { id, item } });
          return {
            status: 201,
            headers: { ...headers, location: `/orders/${id}` },
            body: JSON.stringify({ id, item, status: 'placed' }),
          };
        });
        return sendResponse(response, answer);
      }
      const [, id] = /^\/orders\/(\d{1,9})$/.exec(pathname) ?? [];
      const { rows } = await database.query('SELECT id, item, status FROM orders WHERE id = $1', [id ?? 0]);
      if (request.method !== 'GET' || rows.length === 0)
        return sendResponse(response, { status: 404, headers, body: '{"error":"not found"}' });
      return sendResponse(response, { status: 200, headers, body: JSON.stringify(rows[0]) });
    }),
  );
}
