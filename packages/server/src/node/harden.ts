import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { count, duration, readTable, type SpecOf } from 'holdfast/fields';
import { addressKey } from '../address.ts';

/** Safer options for `http.createServer`. Node's defaults give a slow client several minutes. */
export const hardenedServer: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  // Longer than load balancers usually keep idle connections. So the load balancer closes first, and never sends a
  // request on a connection that the server has just closed.
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
};

const fields = {
  connectionsPerAddressMax: count(256, 1),
  requestsPerSocketMax: count(1_000, 0),
  headersMax: count(100, 1),
  writeIdle: duration('30s'),
};

export type HardenOptions = SpecOf<typeof fields>;

/** Limits the number of connections from one address, and closes connections on which no byte is transferred. */
export function harden(server: Server, options: HardenOptions = {}): void {
  const settings = readTable(fields, options, 'harden.');
  const connections = new Map<string, number>();
  server.maxHeadersCount = settings.headersMax;
  server.maxRequestsPerSocket = settings.requestsPerSocketMax;
  server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress ?? '');
    const open = (connections.get(address) ?? 0) + 1;
    if (open > settings.connectionsPerAddressMax) {
      socket.destroy();
      return;
    }
    connections.set(address, open);
    socket.once('close', () => {
      const left = connections.get(address)! - 1;
      if (left > 0) connections.set(address, left);
      else connections.delete(address);
    });
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    // A client that stops reading keeps the response in memory, so its connection is closed. The timeout starts again
    // with each byte that is transferred.
    socket.setTimeout(settings.writeIdle);
    // If the request is complete and nothing waits to be written, the handler is slow, not the client. `deadline()`
    // limits handlers.
    response.on('timeout', () => {
      if (!request.complete || response.writableLength > 0) socket.destroy();
    });
    response.once('close', () => socket.setTimeout(server.keepAliveTimeout));
  });
}
