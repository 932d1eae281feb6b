import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Stands for a server that nobody may change. Every tenth invoice fails, `/export` never answers, and a payment that is
 * sent twice is made twice. `PUT /sick` makes every request fail until `PUT /well`; `GET /counts` tells what it did.
 */
export async function startOldServer(port: number): Promise<{ server: Server; url: string }> {
  const counts = { requests: 0, payments: 0 };
  let isSick = false;
  const server = createServer((request, response) => {
    if (request.url === '/counts') return response.end(JSON.stringify(counts));
    if (request.method === 'PUT') {
      isSick = request.url === '/sick';
      return response.end();
    }
    counts.requests += 1;
    if (isSick) return response.writeHead(500).end('out of memory\n');
    if (request.url === '/export') return undefined;
    if (request.method === 'POST') return response.end(`payment ${++counts.payments}\n`);
    if (counts.requests % 10 === 0) return response.writeHead(503).end('try later\n');
    return response.end(`invoice ${request.url?.split('/').at(-1)}\n`);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
