import type { Worker } from 'node:cluster';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { ListenConfig } from '../file/gateway-config.ts';
import type { ToWorker } from './worker-messages.ts';

/** The most connections that wait while there is no worker. More are closed. */
const waitingMax = 1024;

/**
 * Accepts the connections of a port, and hands them to workers in turn. A connection stays open here, unread, until its
 * worker says that it has it: if the worker dies before, another one gets it. (With the round robin of `node:cluster` such
 * a connection is never closed, and its client waits for nothing.)
 */
export class Acceptor {
  readonly #server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#hand(socket));
  /** The worker whose turn it is stands first. Each with the connections that are on their way to it, by id. */
  readonly #workers = new Map<Worker, Map<number, Socket>>();
  readonly #leaving = new Map<Worker, Map<number, Socket>>();
  #waiting: Socket[] = [];
  #nextId = 0;

  listen({ host, port }: ListenConfig): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.off('error', reject);
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  add(worker: Worker): void {
    this.#workers.set(worker, new Map());
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const socket of waiting) this.#hand(socket);
  }

  /** Hands no more connections to a worker. */
  retire(worker: Worker): void {
    const onTheWay = this.#workers.get(worker);
    if (!onTheWay) return;
    this.#workers.delete(worker);
    this.#leaving.set(worker, onTheWay);
  }

  /** A worker has taken over a connection. */
  accepted(worker: Worker, id: number): void {
    const onTheWay = this.#workers.get(worker) ?? this.#leaving.get(worker);
    // This closes the descriptor of this process alone.
    onTheWay?.get(id)?.destroy();
    onTheWay?.delete(id);
  }

  /** A worker has ended: what was on its way to it goes to the others. */
  gone(worker: Worker): void {
    this.retire(worker);
    const onTheWay = this.#leaving.get(worker);
    this.#leaving.delete(worker);
    for (const socket of onTheWay?.values() ?? []) this.#hand(socket);
  }

  /** Accepts no more connections. */
  close(): void {
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
    this.#waiting = [];
  }

  #hand(socket: Socket): void {
    const [next] = this.#workers;
    if (!next) {
      if (this.#waiting.length < waitingMax && this.#server.listening) this.#waiting.push(socket);
      else socket.destroy();
      return;
    }
    const [worker, onTheWay] = next;
    this.#workers.delete(worker);
    this.#workers.set(worker, onTheWay);
    const id = ++this.#nextId;
    onTheWay.set(id, socket);
    const message: ToWorker = { kind: 'connection', id };
    // An error here means that the worker ends, and then `gone` is called.
    worker.send(message, socket, { keepOpen: true }, () => {});
  }
}
