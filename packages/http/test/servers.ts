import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import net, { type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach } from 'vitest';
import { selfSigned } from './self-signed.ts';

/** A request as the server saw it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Which connection it came on, counted from 1. */
  readonly connection: number;
}

/** What to answer: a status, with headers and a body; or a function that does it, or does not. */
export type Beat =
  | number
  | { status?: number; headers?: Record<string, string>; body?: string }
  | ((request: IncomingMessage, response: ServerResponse) => void);

export interface Server {
  readonly url: string;
  readonly port: number;
  readonly seen: Seen[];
  readonly connections: () => number;
  /** Bytes received, on all connections together. */
  readonly bytes: () => number;
  readonly open: () => number;
  close(): Promise<void>;
}

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Closes `thing` after the test. */
export function closing<T extends { close(): Promise<unknown> }>(thing: T): T {
  closers.unshift(async () => {
    await thing.close();
  });
  return thing;
}

/** Answers one beat after another; the last one for ever. */
export async function serve(...beats: Beat[]): Promise<Server> {
  const seen: Seen[] = [];
  return started(createServer(answering(beats, seen)), seen, 'http');
}

export const certificate = selfSigned();

/** The same over TLS, with HTTP/2 for those who ask for it. */
export async function serveSecurely(...beats: Beat[]): Promise<Server> {
  const seen: Seen[] = [];
  const server = createSecureServer({ ...certificate, allowHTTP1: true }, answering(beats, seen) as never);
  return started(server, seen, 'https');
}

/** A bare TCP server: `talk` has the connection and its number, counted from 1. */
export async function serveRaw(talk: (socket: Socket, connection: number) => void): Promise<Server> {
  let count = 0;
  const server = net.createServer({ noDelay: true }, (socket) => talk(socket, ++count));
  return started(server, [], 'http');
}

/** A 503 with a body of so many bytes. */
export function downWith(bytes: number, hasLength: boolean): Beat {
  return (_request, response) => {
    response.writeHead(503, hasLength ? { 'content-length': bytes } : {});
    response.end('x'.repeat(bytes));
  };
}

/** A port where nobody listens, for now. */
export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function answering(beats: readonly Beat[], seen: Seen[]) {
  let count = 0;
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const beat = beats[Math.min(count++, beats.length - 1)] ?? 200;
    const { method = '', url = '', headers, socket } = request;
    const entry = { method, url, headers, body: '', connection: numberOf(socket) };
    seen.push(entry);
    if (typeof beat === 'function') {
      beat(request, response);
      return;
    }
    entry.body = await text(request).catch(() => '(broken)');
    const {
      status = 200,
      headers: fields = {},
      body = 'hello',
    } = typeof beat === 'number' ? { status: beat } : beat;
    response.writeHead(status, fields);
    response.end(body);
  };
}

const numbers = new WeakMap<object, number>();

function numberOf(socket: object): number {
  return numbers.get(socket) ?? 0;
}

async function started(server: net.Server, seen: Seen[], scheme: string): Promise<Server> {
  const sockets = new Set<Socket>();
  const raw = new Set<Socket>();
  let connections = 0;
  let closedBytes = 0;
  server.on('connection', (socket: Socket) => {
    connections++;
    numbers.set(socket, connections);
    raw.add(socket);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      closedBytes += socket.bytesRead;
      raw.delete(socket);
      sockets.delete(socket);
    });
  });
  server.on('secureConnection', (socket: Socket) => numbers.set(socket, connections));
  server.on('sessionError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const result: Server = {
    url: `${scheme}://localhost:${port}`.replace('localhost', scheme === 'http' ? '127.0.0.1' : 'localhost'),
    port,
    seen,
    connections: () => connections,
    bytes: () => closedBytes + [...raw].reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    open: () => sockets.size,
    async close() {
      if (!server.listening) return;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
  closers.push(() => result.close());
  return result;
}
