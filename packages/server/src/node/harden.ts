import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { type Duration, OptionsError } from 'holdfast';
import { count, duration, type FieldsOf } from 'holdfast/fields';
import { addressKey } from '../address.ts';
import { readOptions } from '../option-fields.ts';

/**
 * Safer options for `http.createServer`. With Node's defaults, a slow client can keep a connection busy for
 * minutes.
 */
export const hardenedServer: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  // The usual idle timeout of load balancers is shorter, so they close the connection first and no request is
  // lost.
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
};

/** The options of `harden`: limits for each connection and each address. */
export interface HardenOptions {
  /**
   * The most open connections from one address (IPv6: from one /64 network). Further connections are closed.
   * Default: `256`.
   */
  connectionsPerAddressMax?: number | undefined;
  /**
   * The most requests on one connection. After the last one, the connection is closed. 0: no limit. Default:
   * `1000`.
   */
  requestsPerSocketMax?: number | undefined;
  /** The most headers that a request may have. Default: `100`. */
  headersMax?: number | undefined;
  /** A connection is closed if no byte is sent or received on it for this time. Default: `30s`. */
  writeIdle?: Duration | undefined;
}

export const hardenFields = {
  connectionsPerAddressMax: count(256, 1),
  requestsPerSocketMax: count(1_000, 0),
  headersMax: count(100, 1),
  writeIdle: duration('30s'),
} satisfies FieldsOf<HardenOptions>;

/** Limits the connections from one address, and closes connections on which no byte is transferred. */
export function harden(server: Server, options: HardenOptions = {}): void {
  const settings = readOptions(hardenFields, options, 'harden', '{ headersMax: 100 }');
  assertServer(server);
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
    // If a client stops reading, its response stays in memory. So the connection is closed after this idle
    // time.
    socket.setTimeout(settings.writeIdle);
    // If the request has arrived and no byte waits to be sent, the handler is slow. The connection stays open.
    response.on('timeout', () => {
      if (!request.complete || response.writableLength > 0) socket.destroy();
    });
    response.once('close', () => socket.setTimeout(server.keepAliveTimeout));
  });
}

function assertServer(given: unknown): void {
  if (given instanceof NetServer) return;
  const shown = given === null || given === undefined ? given : typeof given;
  throw new OptionsError(
    'harden.server',
    shown,
    'the server that createServer() or app.listen() returns, or the `server` of a Fastify app',
  );
}
