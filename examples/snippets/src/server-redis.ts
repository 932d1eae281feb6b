import { createServer, type Server } from 'node:http';
import { openRedis } from '@holdfast/redis';
import { contextOf, harden, hardenedServer, idempotency, rateLimit } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';

/** One of four processes that share keys and limits. What it does is somewhere else, so it is done in phases. */
export function payments(url: string): Server {
  const { ledger, rateLimits } = openRedis({ url });
  const server = createServer(
    hardenedServer,
    guard(
      [
        rateLimit({ rateLimits, nodes: 4, lease: true, limits: { rate: '50/s' } }),
        idempotency({ ledger, scope: 'public', whenLost: 'reexecute' }),
      ],
      async (request, response) => {
        const { idempotent } = contextOf(request)!;
        const charge = await idempotent!.phase('charge', async () => ({ id: 'ch_1' }));
        await idempotent!.phase('receipt', async () => {});
        sendResponse(response, { status: 201, headers: {}, body: charge.id });
      },
    ),
  );
  harden(server);
  return server;
}
