import type { Worker } from 'node:cluster';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { ListenConfig } from '../file/gateway-config.ts';
import type { ToWorker } from './worker-messages.ts';

/** The most connections that wait while there is no worker. Further ones are closed. */
const waitingMax = 1024;

/**
 * Accepts connections and passes them to the workers in turn. If a worker dies before it confirms a
 * connection, another worker gets the connection.
 */
export class Acceptor {
  readonly #server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#hand(socket));
  /** For each worker: its unconfirmed connections, by id. The worker that is next comes first. */
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

  retire(worker: Worker): void {
    const onTheWay = this.#workers.get(worker);
    if (!onTheWay) return;
    this.#workers.delete(worker);
    this.#leaving.set(worker, onTheWay);
  }

  accepted(worker: Worker, id: number): void {
    const onTheWay = this.#workers.get(worker) ?? this.#leaving.get(worker);
    // This closes only the copy of the connection in this process. The worker has its own copy.
    onTheWay?.get(id)?.destroy();
    onTheWay?.delete(id);
  }

  /** Call it when a worker has ended. Its unconfirmed connections go to other workers. */
  gone(worker: Worker): void {
    this.retire(worker);
    const onTheWay = this.#leaving.get(worker);
    this.#leaving.delete(worker);
    for (const socket of onTheWay?.values() ?? []) this.#hand(socket);
  }

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
    // An error means that the worker has ended. In this case, `gone` is called.
    worker.send(message, socket, { keepOpen: true }, () => {});
  }
}
