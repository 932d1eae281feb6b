import type { Socket } from 'node:net';

/**
 * A connection is closed when it has had no request for this time (ms). It is not closed at once, because the
 * client may have sent a request that has not arrived yet.
 */
const quietMs = 500;

interface Connection {
  running: number;
  quietSince: number;
  /**
   * `bytesRead` of the socket when it was opened or its last request ended. If `bytesRead` is larger, a new
   * request (or another protocol) has begun.
   */
  bytesBefore: number;
}

/** The connections of an HTTP/1 server, and since when each of them has had no request. */
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

  /**
   * Closes the connections that have had no request for `quietMs`. Returns after how many ms it should be
   * called again.
   */
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
