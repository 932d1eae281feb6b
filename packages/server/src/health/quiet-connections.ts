import type { Socket } from 'node:net';

/**
 * A connection is closed only after this time (ms) without a request, because a request that the client has
 * sent may still be on its way.
 */
const quietMs = 500;

interface Connection {
  running: number;
  quietSince: number;
  /**
   * `bytesRead` of the socket when its last request ended. If `bytesRead` is larger, a new request has begun.
   */
  bytesBefore: number;
}

export class QuietConnections {
  readonly #connections = new Map<Socket, Connection>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  opened(socket: Socket): void {
    this.#connections.set(socket, { running: 0, quietSince: this.#now(), bytesBefore: socket.bytesRead });
    socket.once('close', () => this.#connections.delete(socket));
  }

  begun(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection) connection.running++;
  }

  ended(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.running--;
    connection.quietSince = this.#now();
    connection.bytesBefore = socket.bytesRead;
  }

  /** Closes the connections that had no request for `quietMs`. Returns the time (ms) until the next call. */
  close(): number {
    let nextInMs = quietMs;
    for (const [socket, { running, quietSince, bytesBefore }] of this.#connections) {
      if (running > 0 || socket.bytesRead > bytesBefore) continue;
      const leftMs = quietSince + quietMs - this.#now();
      if (leftMs <= 0) socket.destroy();
      else nextInMs = Math.min(nextInMs, leftMs);
    }
    return nextInMs;
  }
}
