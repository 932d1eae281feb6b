import type { Socket } from 'node:net';

/**
 * A connection is closed when it has been quiet for this time. A request may be on its way on a connection that is
 * idle here, so none is closed at once.
 */
const quietMs = 500;

interface Connection {
  running: number;
  quietSince: number;
  /** `bytesRead` of the socket when it became quiet. More bytes: a request, or another protocol, has begun. */
  bytesBefore: number;
}

/** The connections of an HTTP/1 server, and how long nothing has been asked on each. */
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

  /** Closes the connections that are quiet for long enough. Returns when the next one may be, in ms. */
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
