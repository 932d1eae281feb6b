import { bulkhead, contextOf, deadline, health, peers, rateLimit, shed } from '@holdfast/server';
import { guard } from '@holdfast/server/fastify';
import fastify, { type FastifyInstance } from 'fastify';

/** Our own services and balancers: their word on addresses and priorities is believed. */
const inside = peers('10.0.0.0/8', '127.0.0.1');

export async function catalogue(): Promise<FastifyInstance> {
  const app = fastify();
  await app.register(guard, {
    parts: [
      health(),
      deadline({ inside, timeout: '2s' }),
      rateLimit({ limits: { rate: '100/m' }, proxies: inside }),
      shed({ inside }),
      bulkhead({ concurrent: 200 }),
    ],
  });
  app.get('/products/:id', async (request) => {
    // Ends with the client, and with its patience.
    const { signal } = contextOf(request)!;
    return findProduct((request.params as { id: string }).id, signal);
  });
  return app;
}

async function findProduct(id: string, signal: AbortSignal): Promise<object> {
  signal.throwIfAborted();
  return { id, name: 'book' };
}
