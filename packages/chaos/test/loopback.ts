import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A TCP server on a free port, gone when the test is. */
export async function tcpServer(
  onConnection: (socket: net.Socket) => void,
): Promise<{ port: number; address: string; sockets: Set<net.Socket> }> {
  const server = net.createServer({ allowHalfOpen: true });
  const sockets = keep(server);
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  return { ...(await listen(server)), sockets };
}

export async function httpServer(
  listener: http.RequestListener,
): Promise<{ port: number; url: string; address: string; sockets: Set<net.Socket> }> {
  const server = http.createServer(listener);
  const sockets = keep(server);
  const { port, address } = await listen(server);
  return { port, address, url: `http://${address}`, sockets };
}

/** A port that nothing listens on. */
export async function deadPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** How each client's connection broke, from its first moment: a reset can come before anyone asks. */
const codes = new WeakMap<net.Socket, string | undefined>();

export function connect(port: number): net.Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', (error: NodeJS.ErrnoException) => codes.set(socket, error.code));
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

/** All that comes to a client from now until the other side ends, and how it ended. */
export async function readAll(
  socket: net.Socket,
): Promise<{ bytes: Buffer; ended: boolean; code: string | undefined }> {
  const chunks: Buffer[] = [];
  let ended = false;
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('end', () => {
    ended = true;
    socket.end();
  });
  // Not `once` of node:events, which takes the error for its own.
  if (!socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { bytes: Buffer.concat(chunks), ended, code: codes.get(socket) };
}

function keep(server: net.Server): Set<net.Socket> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return sockets;
}

async function listen(server: net.Server): Promise<{ port: number; address: string }> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, address: `127.0.0.1:${port}` };
}
