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

export interface Listener {
  listen(): Promise<void>;
  accept(socket: Socket): void;
  /** Read it only after `listen` has resolved. */
  readonly address: AddressInfo;
  /** Resolves when all open connections are closed. */
  stop(): Promise<void>;
  /**
   * Closes idle connections. A request that is just arriving on one of them is lost, and the client must
   * repeat it.
   */
  closeIdle(): void;
  readonly connections: number;
  destroy(): void;
  /** Closes connections that have data to send, but have sent no byte since the previous call. */
  closeStalled(): void;
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
    // WebSocket is the only supported upgrade. Other `Upgrade` headers are ignored.
    shouldUpgradeCallback: (request: IncomingMessage) =>
      request.headers.upgrade?.toLowerCase() === 'websocket',
  };
  const certificate = tls && {
    cert: tls.cert,
    key: tls.key,
    ...(tls.clientCa !== undefined && { ca: tls.clientCa, requestCert: true }),
  };
  const sockets = new Set<Socket>();
  /** How many bytes a connection with unsent data had sent at the last `closeStalled` call. */
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
    // Each response of an HTTP/2 session has its own `close` event, so errors of the session are ignored.
    server.on('sessionError', () => {});
  }
  const front: NetServer = plainHttp2
    ? sniffingServer(main, plainHttp2, config.headersTimeoutMs)
    : (main as NetServer);
  let looksForSlowRequests = false;
  /**
   * Node checks the timeouts of requests only after the `listening` event. A server that gets its connections
   * from elsewhere never emits this event, so this function emits it.
   */
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
      // This tells HTTP/2 clients to send no more requests. HTTP/1.1 clients learn it from `Connection:
      // close` in a response.
      for (const session of sessions) session.close();
      // `close` of an HTTP server would also close idle connections at once. So `close` of `NetServer` is
      // called.
      return new Promise<void>((resolve) => NetServer.prototype.close.call(front, () => resolve()));
    },
    closeIdle() {
      main.closeIdleConnections?.();
      for (const session of sessions) session.close();
      // Browsers open connections in advance. `closeIdleConnections` does not close those without a received
      // byte.
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

/** Accepts HTTP/1.1 and HTTP/2 without TLS on one port. The first bytes show the protocol. */
function sniffingServer(http1: Server, http2: Server, timeoutMs: number): NetServer {
  return createNet((socket) => {
    socket.on('error', () => socket.destroy());
    // Until one of the servers has the connection, neither of them checks its timeouts. So a timeout is set
    // here.
    socket.setTimeout(timeoutMs, () => socket.destroy());
    let first = Buffer.alloc(0);
    const read = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk !== null) first = Buffer.concat([first, chunk]);
      const text = first.toString('latin1', 0, preface.length);
      const isHttp2 = preface.startsWith(text);
      // "P" may be the beginning of POST, and "PR" of PROPFIND. No HTTP/1.1 method begins with "PRI".
      if (isHttp2 && text.length < 3) {
        socket.once('readable', read);
        return;
      }
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      socket.unshift(first);
      (isHttp2 ? http2 : http1).emit('connection', socket);
    };
    socket.once('readable', read);
  });
}
