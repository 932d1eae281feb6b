import {
  bulkhead,
  contextOf,
  deadline,
  gracefulShutdown,
  health,
  peers,
  rateLimit,
  shed,
} from '@holdfast/server';
import { guard } from '@holdfast/server/fastify';
import fastify from 'fastify';

/** Our own services and balancers: their word on addresses and priorities is believed. */
const inside = peers('10.0.0.0/8', '127.0.0.1');

const ready = health();
const app = fastify();
await app.register(guard, {
  parts: [
    ready,
    deadline({ inside, timeout: '2s' }),
    rateLimit({ limits: { rate: '100/m' }, proxies: inside }),
    shed({ inside }),
    bulkhead({ concurrent: 200 }),
  ],
});
app.get<{ Params: { id: string } }>('/products/:id', async (request) => {
  // Ends with the client, and with its patience.
  const { signal } = contextOf(request)!;
  return findProduct(request.params.id, signal);
});

async function findProduct(id: string, signal: AbortSignal): Promise<object> {
  signal.throwIfAborted();
  return { id, name: 'book' };
}

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' }));
// Ctrl-C and SIGTERM let running requests finish. Behind a load balancer, leave out drainDelay: it is 5 s.
gracefulShutdown(app, { health: ready, drainDelay: 0 });
