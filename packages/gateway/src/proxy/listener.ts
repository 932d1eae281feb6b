import {
  createServer as createHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createSecureServer as createHttp2, createServer as createPlainHttp2 } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createNet, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { addressKey } from '@holdfast/server';
import type { ListenConfig } from '../file/gateway-config.ts';

export interface ListenerHandlers {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void;
}

/** The socket that clients connect to. */
export interface Listener {
  listen(): Promise<void>;
  /** Serves a connection that another process has accepted. */
  accept(socket: Socket): void;
  /** Only after `listen`. */
  readonly address: AddressInfo;
  /** Stops accepting connections. Resolves when all are closed. */
  stop(): Promise<void>;
  /** Closes connections without a request. A client may be about to send one, and would have to send it again. */
  closeIdle(): void;
  /** How many connections are open. */
  readonly connections: number;
  destroy(): void;
  /** Closes connections on which a response has waited to be read since the last call, without a byte of progress. */
  closeStalled(): void;
  /** Uses another certificate for new connections. */
  setCertificate(tls: NonNullable<ListenConfig['tls']>): void;
}

/** The first bytes of an HTTP/2 connection. */
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

export function createListener(config: ListenConfig, handlers: ListenerHandlers): Listener {
  const { tls, http2 } = config;
  const options = {
    headersTimeout: config.headersTimeoutMs,
    requestTimeout: Math.max(config.headersTimeoutMs, config.bodyTimeoutMs),
    connectionsCheckingInterval: Math.min(1000, config.headersTimeoutMs),
    keepAliveTimeout: config.keepAliveMs,
    maxHeaderSize: config.headerBytesMax,
    // Only WebSocket is passed on; a request to change to anything else is served as it is.
    shouldUpgradeCallback: (request: IncomingMessage) =>
      request.headers.upgrade?.toLowerCase() === 'websocket',
  };
  const certificate = tls && {
    cert: tls.cert,
    key: tls.key,
    ...(tls.clientCa !== undefined && { ca: tls.clientCa, requestCert: true }),
  };
  const sockets = new Set<Socket>();
  /** Bytes that had been sent when a connection was last found with bytes that wait. */
  const stalledAt = new WeakMap<Socket, number>();
  const sessions = new Set<{ close(): void; destroy(): void }>();

  const http1 = (): Server => {
    const server = certificate ? createHttps({ ...options, ...certificate }) : createHttp(options);
    return server as Server;
  };
  const secureHttp2 = () => {
    const server = createHttp2({ ...options, ...certificate, allowHTTP1: true });
    Object.assign(server, options);
    return server as unknown as Server;
  };
  const main = certificate && http2 ? secureHttp2() : http1();
  const plainHttp2 = http2 && !certificate ? (createPlainHttp2() as unknown as Server) : undefined;

  const connections = new Map<string, number>();
  const limitConnections = (socket: Socket) => {
    const address = addressKey(socket.remoteAddress ?? '');
    const open = (connections.get(address) ?? 0) + 1;
    if (open > config.connectionsPerClientMax) {
      socket.destroy();
      return;
    }
    connections.set(address, open);
    socket.once('close', () => {
      const left = connections.get(address)! - 1;
      if (left > 0) connections.set(address, left);
      else connections.delete(address);
    });
  };

  for (const server of plainHttp2 ? [main, plainHttp2] : [main]) {
    server.maxHeadersCount = config.headersMax;
    server.on('connection', limitConnections);
    server.on('request', handlers.request);
    server.on('checkContinue', handlers.request);
    server.on('upgrade', handlers.upgrade);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    server.on(
      'session',
      (session: { close(): void; destroy(): void; once(name: string, fn: () => void): void }) => {
        sessions.add(session);
        session.once('close', () => sessions.delete(session));
      },
    );
    // A session that breaks is the client's affair; its requests are told by their own events.
    server.on('sessionError', () => {});
  }
  const front: NetServer = plainHttp2 ? sniffingServer(main, plainHttp2) : (main as NetServer);
  let looksForSlowRequests = false;
  /** Node looks for slow requests after this event. A server that gets its connections from another one never has it. */
  const lookForSlowRequests = () => {
    looksForSlowRequests = true;
    main.emit('listening');
  };

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        front.once('error', reject);
        front.listen({ host: config.host, port: config.port, backlog: 1024 }, () => {
          front.off('error', reject);
          if (front !== main) lookForSlowRequests();
          resolve();
        });
      }),
    accept(socket) {
      if (!looksForSlowRequests) lookForSlowRequests();
      front.emit('connection', socket);
    },
    get address() {
      return front.address() as AddressInfo;
    },
    get connections() {
      return sockets.size;
    },
    stop() {
      // HTTP/2 can tell its clients to send no more requests; HTTP/1.1 can do so only in a response.
      for (const session of sessions) session.close();
      // `close` of `http.Server` would close idle connections at once.
      return new Promise<void>((resolve) => NetServer.prototype.close.call(front, () => resolve()));
    },
    closeIdle() {
      main.closeIdleConnections?.();
      for (const session of sessions) session.close();
      // Browsers connect in advance. Node does not count a connection without a byte as idle.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    },
    closeStalled() {
      for (const socket of sockets) {
        const written = socket.bytesWritten - socket.writableLength;
        if (socket.writableLength > 0 && stalledAt.get(socket) === written) socket.destroy();
        else if (socket.writableLength > 0) stalledAt.set(socket, written);
        else stalledAt.delete(socket);
      }
    },
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
    setCertificate({ cert, key, clientCa }) {
      (main as unknown as { setSecureContext?(options: object): void }).setSecureContext?.({
        cert,
        key,
        ...(clientCa !== undefined && { ca: clientCa }),
      });
    },
  };
}

/** Accepts HTTP/1.1 and HTTP/2 without TLS on one port: the first bytes tell which it is. */
function sniffingServer(http1: Server, http2: Server): NetServer {
  return createNet((socket) => {
    socket.on('error', () => socket.destroy());
    const read = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) {
        socket.once('readable', read);
        return;
      }
      const text = chunk.toString('latin1', 0, preface.length);
      socket.unshift(chunk);
      // A shorter beginning of the preface cannot be a request of HTTP/1.1 either: no method is called PRI.
      const server = text.startsWith(preface.slice(0, Math.min(text.length, preface.length))) ? http2 : http1;
      server.emit('connection', socket);
    };
    socket.once('readable', read);
  });
}
