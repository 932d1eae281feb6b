import type { DatabaseSync } from 'node:sqlite';
import { contextOf, idempotency } from '@holdfast/server';
import { guard } from '@holdfast/server/fastify';
import type { SqliteEngine } from '@holdfast/sqlite';
import fastify, { type FastifyInstance } from 'fastify';

/** An order and its key are in one file: both are there, or neither is. */
export async function orders({ ledger }: SqliteEngine): Promise<FastifyInstance> {
  const app = fastify();
  await app.register(guard, { parts: [idempotency({ ledger, scope: 'public', transactional: true })] });
  app.post<{ Body: { item: string } }>('/orders', async (request, reply) => {
    const { idempotent } = contextOf<DatabaseSync>(request)!;
    const answer = await idempotent!.commit((database) => {
      const insert = database.prepare('INSERT INTO orders (item) VALUES (?)');
      const { lastInsertRowid: id } = insert.run(request.body.item);
      const headers = { 'content-type': 'application/json', location: `/orders/${id}` };
      return { status: 201, headers, body: JSON.stringify({ id: Number(id) }) };
    });
    return reply.code(answer.status).headers(answer.headers).send(answer.body);
  });
  return app;
}
