import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands for a payment service: it refuses every third request, and charges once for each key. */
export async function startPayment(): Promise<string> {
  const charged = new Set<string>();
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    if (requests % 3 === 1) return response.writeHead(503).end();
    charged.add(String(request.headers['idempotency-key']));
    return response.end(JSON.stringify({ charged: charged.size }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
