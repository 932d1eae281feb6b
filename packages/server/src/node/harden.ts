import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { count, duration, readTable, type SpecOf } from 'holdfast/fields';
import { addressKey } from '../address.ts';

/** Options for `http.createServer`: Node's defaults allow a slow client minutes and any number of connections. */
export const hardenedServer: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  // Longer than load balancers keep connections, so that they close first and never use one that was just closed.
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

/** Limits the connections of one address, and closes those on which no byte moves. */
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
    // A client that stops reading keeps the response in memory. The timeout counts time in which no byte moved.
    socket.setTimeout(settings.writeIdle);
    // With the request complete and nothing to write the handler is slow: `deadline()` limits that.
    response.on('timeout', () => {
      if (!request.complete || response.writableLength > 0) socket.destroy();
    });
    response.once('close', () => socket.setTimeout(server.keepAliveTimeout));
  });
}
