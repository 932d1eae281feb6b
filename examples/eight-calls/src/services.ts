import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Services {
  readonly origin: string;
  /** Requests that the page did not wait for any longer. */
  readonly cancelled: readonly string[];
  close(): void;
}

/** Stands for eight services: all answer but those that hang, and the price, which fails for a moment. */
export async function startServices(hanging: ReadonlySet<string>): Promise<Services> {
  let priceRequests = 0;
  const cancelled: string[] = [];
  const server = createServer((request, response) => {
    const name = request.url!.slice(1);
    if (hanging.has(name)) return response.on('close', () => cancelled.push(name));
    if (name === 'price' && ++priceRequests === 1) return response.writeHead(503).end();
    return response.end(`the ${name} of a lamp`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cancelled,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
