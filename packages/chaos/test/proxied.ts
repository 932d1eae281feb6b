import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, onTestFinished, vi } from 'vitest';
import type { FaultSpec } from '../src/fault-spec.ts';
import { type ChaosProxyOptions, chaosProxy } from '../src/proxy.ts';
import { tcpServer } from './loopback.ts';

export async function proxyTo(
  upstream: number,
  faults: FaultSpec[] = [],
  more: Partial<ChaosProxyOptions> = {},
) {
  const proxy = await chaosProxy({ upstream, spec: { faults }, ...more });
  onTestFinished(() => proxy.close());
  return proxy;
}

/** A server that answers each piece it gets with the same piece, and ends when its client does. */
export async function echo() {
  const received: Buffer[] = [];
  const server = await tcpServer((socket) => {
    socket.on('data', (chunk) => {
      received.push(chunk);
      socket.write(chunk);
    });
    socket.on('end', () => socket.end());
  });
  return { ...server, received: () => Buffer.concat(received).toString() };
}

export async function ask(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

export const mebibyte = 1024 * 1024;
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
export const eventually = (check: () => void) => vi.waitFor(check, { interval: 2, timeout: 10_000 });

/** The value once it is above zero and has stayed the same for many turns of the event loop. */
export async function settled(read: () => number): Promise<number> {
  let last = 0;
  for (let same = 0; same < 300 || last === 0; same++) {
    await turn();
    if (read() !== last) same = 0;
    last = read();
  }
  return last;
}

/** Reads from a server's only connection until so many bytes have come. */
export async function drainInto(sockets: Set<Socket>, size: number): Promise<void> {
  await eventually(() => expect(sockets.size).toBe(1));
  const [socket] = sockets as Set<Socket>;
  let received = 0;
  await new Promise<void>((resolve) => {
    socket!.on('data', (bytes) => {
      received += bytes.length;
      if (received === size) resolve();
    });
    socket!.resume();
  });
}

export const never = (what: string) => () => {
  throw new Error(`${what} was not to happen`);
};
